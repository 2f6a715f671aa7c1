-- The keys of strict FIFO queues that a failed job blocks, with that job.
SELECT q.name, b.key, b.id
FROM trioboss.queue q
CROSS JOIN LATERAL (
    SELECT j.key, j.id FROM trioboss.live_job j
    WHERE j.queue = q.name AND
\ir fragments/blocks_key.sql
    ORDER BY j.owner LIMIT :limit::bigint
) b
WHERE q.policy = 'key_strict_fifo'
ORDER BY q.name, b.key LIMIT :limit;
