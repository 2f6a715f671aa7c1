-- For each queue: its policy, whether it is paused, whether jobs wait in it and for how many seconds, how many workers it
-- has, whether some of the first jobs have a key, and how many keys are blocked. Reads at most 1000 jobs of a queue.
SELECT q.name, q.policy, q.paused, coalesce(f.due, 0) AS due, coalesce(f.age, 0)::float8 AS age,
       (SELECT count(*) FROM trioboss.worker w
        WHERE w.gone_since IS NULL AND q.name LIKE replace(replace(w.queue, '_', '\_'), '*', '%')) AS workers,
       coalesce(f.keys, 0) AS keys,
       (SELECT count(*) FROM trioboss.live_job j
        WHERE j.queue = q.name AND j.owner IS NOT NULL AND j.readiness = 'ended') AS blocked
FROM trioboss.queue q
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE w.start_after <= now()) AS due, count(w.key) AS keys,
           extract(epoch FROM now() - min(w.start_after) FILTER (WHERE w.start_after <= now())) AS age
    FROM (SELECT j.start_after, j.key FROM trioboss.live_job j
          WHERE j.queue = q.name AND j.readiness < 'active' LIMIT 1000) w
) f ON true
ORDER BY q.name;
