-- Count the jobs of one queue, or of each. Live ones are counted as they are now; ended ones over the last day: those
-- that failed or were cancelled by their index, those that completed by the samples and what has come since, up
-- to 100000.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), completed AS MATERIALIZED (
    SELECT queue, sum(n)::bigint AS n
    FROM (SELECT s.queue, s.completed AS n FROM trioboss.queue_sample s JOIN trioboss.queue q ON q.name = s.queue, clock c
          WHERE (:queue::text IS NULL OR s.queue = :queue) AND s.minute > c.now - interval '1 day' AND s.completed > 0
          UNION ALL
          (SELECT a.queue, 1 FROM trioboss.archive a, clock c
           WHERE a.xid >= (SELECT xid FROM trioboss.sampling) AND a.completed_on > c.now - interval '1 day'
             AND a.outcome = 'completed' AND (:queue IS NULL OR a.queue = :queue)
           LIMIT 100000)) n
    GROUP BY queue
)
SELECT q.name, l.deferred, l.queued, l.queued - l.deferred - l.blocked, l.active, l.blocking + f.failed, coalesce(d.n, 0), f.cancelled,
       coalesce(x.dead_letter, 0), l.retries, coalesce(extract(epoch FROM c.now - l.oldest), 0)::float8, q.paused,
       l.blocked
FROM clock c
CROSS JOIN trioboss.queue q
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE j.readiness < 'active' AND j.start_after > c.now) AS deferred,
           count(*) FILTER (WHERE j.readiness < 'active') AS queued,
           count(*) FILTER (WHERE j.readiness = 'active') AS active,
           count(*) FILTER (WHERE j.readiness = 'ended') AS blocking,
           count(*) FILTER (WHERE j.readiness < 'active' AND j.attempt > 0) AS retries,
           count(*) FILTER (WHERE j.readiness < 'active' AND j.start_after <= c.now AND o.owner IS NOT NULL) AS blocked,
           min(j.start_after) FILTER (WHERE j.readiness < 'active' AND j.start_after <= c.now AND o.owner IS NULL) AS oldest
    FROM trioboss.live_job j
    LEFT JOIN (
\ir fragments/blocked_keys.sql
    ) o ON o.owner = j.backlog AND j.readiness < 'active'
    WHERE j.queue = q.name
) l
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM trioboss.archive a WHERE a.queue = q.name AND a.outcome = 'failed'
            AND a.completed_on > c.now - interval '1 day') AS failed,
           (SELECT count(*) FROM trioboss.archive a WHERE a.queue = q.name AND a.outcome = 'cancelled'
            AND a.completed_on > c.now - interval '1 day') AS cancelled
) f
LEFT JOIN LATERAL (
    SELECT count(*) AS dead_letter FROM trioboss.live_job j
    WHERE j.queue = q.dead_letter AND j.readiness < 'active' AND j.notes #>> '{source,queue}' = q.name
) x ON q.dead_letter IS NOT NULL
LEFT JOIN completed d ON d.queue = q.name
WHERE :queue IS NULL OR q.name = :queue
ORDER BY q.name;
