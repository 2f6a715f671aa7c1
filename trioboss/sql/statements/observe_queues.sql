-- For each queue: how many jobs wait and run, counted up to 100000, for how many seconds the oldest has waited, and how
-- many were sent since :since. Jobs are found by their ids, which begin with the time of their making; :since is such an id.
SELECT q.name, q.policy, q.paused, b.waiting, b.deferred, b.active, b.oldest_age, i.live + i.ended AS sent,
       (SELECT count(*) FROM trioboss.worker w
        WHERE w.gone_since IS NULL AND q.name LIKE replace(replace(w.queue, '_', '\_'), '*', '%')) AS workers
FROM trioboss.queue q
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE w.readiness < 'active' AND w.start_after <= statement_timestamp()) AS waiting,
           count(*) FILTER (WHERE w.readiness < 'active' AND w.start_after > statement_timestamp()) AS deferred,
           count(*) FILTER (WHERE w.readiness = 'active') AS active,
           coalesce(extract(epoch FROM statement_timestamp() - min(w.start_after)
               FILTER (WHERE w.readiness < 'active' AND w.start_after <= statement_timestamp())), 0)::float8 AS oldest_age
    FROM (SELECT j.readiness, j.start_after FROM trioboss.live_job j
          WHERE j.queue = q.name AND j.readiness < 'ended' LIMIT 100000) w
) b
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM trioboss.live_job j WHERE j.queue = q.name AND j.id > :since::uuid) AS live,
           (SELECT count(*) FROM trioboss.archive a WHERE a.queue = q.name AND a.id > :since) AS ended
) i
ORDER BY q.name;
