-- For each queue: how many jobs wait and run, counted up to 100000, for how many seconds the oldest that no failed job
-- blocks has waited, and how many were sent since :since. Those are found by their ids, which begin with the time of
-- their making: :since and :until are such ids. Ids of another kind, which callers chose, are mostly beyond :until, and
-- not counted.
SELECT q.name, q.policy, q.paused, b.waiting, b.deferred, b.active, b.oldest_age, i.live + i.ended AS sent,
       (SELECT count(*) FROM trioboss.worker w
        WHERE w.gone_since IS NULL AND
\ir fragments/is_served.sql queue=q.name pattern=w.queue
       ) AS workers
FROM trioboss.queue q
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE w.readiness < 'active' AND w.start_after <= statement_timestamp()) AS waiting,
           count(*) FILTER (WHERE w.readiness < 'active' AND w.start_after > statement_timestamp()) AS deferred,
           count(*) FILTER (WHERE w.readiness = 'active') AS active,
           coalesce(extract(epoch FROM statement_timestamp() - min(w.start_after)
               FILTER (WHERE w.readiness < 'active' AND w.start_after <= statement_timestamp() AND o.owner IS NULL)), 0)::float8
               AS oldest_age
    FROM (SELECT j.readiness, j.start_after, j.backlog FROM trioboss.live_job j
          WHERE j.queue = q.name AND j.readiness < 'ended' LIMIT 100000) w
    LEFT JOIN (
\ir fragments/blocked_keys.sql
    ) o ON o.owner = w.backlog AND w.readiness < 'active'
) b
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM trioboss.live_job j WHERE j.queue = q.name AND j.id > :since::uuid AND j.id < :until::uuid) AS live,
           (SELECT count(*) FROM trioboss.archive a WHERE a.queue = q.name AND a.id > :since AND a.id < :until) AS ended
) i
ORDER BY q.name;
