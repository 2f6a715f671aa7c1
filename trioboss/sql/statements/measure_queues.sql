-- For each queue: how many jobs wait, for how many seconds the oldest of them that no failed job blocks could have been
-- running, whether it has a worker, and how many keys a failed job blocks (null for policies that block none). Reads at
-- most 100000 jobs of a queue, so that its cost does not grow with the queue.
SELECT q.name, b.size, b.oldest_age, s.served,
       CASE WHEN q.policy = 'key_strict_fifo'
            THEN (SELECT count(*) FROM trioboss.live_job j WHERE j.queue = q.name AND
\ir fragments/blocks_key.sql
            ) END AS blocked
FROM trioboss.queue q
CROSS JOIN LATERAL (
    SELECT count(*) AS size,
           coalesce(extract(epoch FROM statement_timestamp()
               - min(w.start_after) FILTER (WHERE w.start_after <= statement_timestamp() AND o.owner IS NULL)), 0)::float8 AS oldest_age
    FROM (SELECT j.start_after, j.backlog FROM trioboss.live_job j
          WHERE j.queue = q.name AND j.readiness < 'active' LIMIT 100000) w
    LEFT JOIN (
\ir fragments/blocked_keys.sql
    ) o ON o.owner = w.backlog
) b
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM trioboss.worker w WHERE w.gone_since IS NULL AND
\ir fragments/is_served.sql queue=q.name pattern=w.queue
    ) AS served
) s
ORDER BY q.name;
