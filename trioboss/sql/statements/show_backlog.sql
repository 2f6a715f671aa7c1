-- The jobs of one key in their order: the owner, and then the first jobs that wait behind it.
(SELECT 0 AS part, j.id, j.readiness::text, j.attempt, j.retry_count, j.priority, j.created_on, j.start_after, j.started_on,
        j.notes #>> '{error,name}' AS error, left(j.notes #>> '{error,message}', 300) AS message, j.seq, j.rank
 FROM trioboss.live_job j WHERE j.queue = :queue::text AND j.owner = 'key:' || :key::text)
UNION ALL
(SELECT 1, j.id, j.readiness::text, j.attempt, j.retry_count, j.priority, j.created_on, j.start_after, j.started_on,
        NULL, NULL, j.seq, j.rank
 FROM trioboss.live_job j WHERE j.queue = :queue AND j.readiness = 'waiting' AND j.backlog = 'key:' || :key
 ORDER BY j.rank, j.seq LIMIT :limit::bigint)
ORDER BY part, rank, seq;
