-- The backlog of a key: its owner, and the jobs that wait behind it, in the order in which they will run.
SELECT id, readiness::text, attempt, created_on, start_after FROM (
    SELECT id, readiness, attempt, created_on, start_after, 0 AS rank, seq FROM trioboss.live_job_common
    WHERE queue = :queue::text AND owner = 'key:' || :key::text
    UNION ALL
    (SELECT id, readiness, attempt, created_on, start_after, 1, row_number() OVER (ORDER BY rank, seq)
     FROM trioboss.live_job_common
     WHERE queue = :queue AND backlog = 'key:' || :key AND readiness = 'waiting'
     ORDER BY rank, seq LIMIT :limit::bigint)
) backlog
ORDER BY rank, seq;
