-- For each queue that has a worker: how many jobs wait, and for how many seconds the oldest of them could have been
-- running. Reads at most 100000 jobs of a queue, so that its cost does not grow with the backlog.
SELECT q.name, b.size, b.oldest_age
FROM trioboss.queue q
CROSS JOIN LATERAL (
    SELECT count(*) AS size,
           coalesce(extract(epoch FROM statement_timestamp()
               - min(w.start_after) FILTER (WHERE w.start_after <= statement_timestamp())), 0)::float8 AS oldest_age
    FROM (SELECT j.start_after FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness < 'active' LIMIT 100000) w
) b
WHERE EXISTS (SELECT FROM trioboss.worker w WHERE q.name LIKE replace(replace(w.queue, '_', '\_'), '*', '%'))
ORDER BY q.name;
