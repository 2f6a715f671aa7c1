-- The keys that a failed job blocks, of one strict FIFO queue or of all: that job, since when it blocks, its error, and
-- how many jobs wait behind it, counted up to 10000.
SELECT b.queue, b.key, b.id, b.since, b.error, w.waiting
FROM (
    SELECT q.name AS queue, k.*
    FROM trioboss.queue q
    CROSS JOIN LATERAL (
        SELECT j.key, j.owner, j.id, (j.notes ->> 'failed_on')::timestamptz AS since, j.notes -> 'error' AS error
        FROM trioboss.live_job j
        WHERE j.queue = q.name AND
\ir fragments/blocks_key.sql
        ORDER BY j.owner LIMIT :limit::bigint
    ) k
    WHERE q.policy = 'key_strict_fifo' AND (:queue::text IS NULL OR q.name = :queue)
    ORDER BY q.name, k.owner LIMIT :limit
) b
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting
    FROM (SELECT FROM trioboss.live_job j
          WHERE j.queue = b.queue AND j.backlog = b.owner AND j.readiness = 'waiting' LIMIT 10000) j
) w
ORDER BY b.queue, b.key;
