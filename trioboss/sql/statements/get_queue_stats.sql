-- Count the jobs of a queue. Live ones are counted as they are now; ended ones over what the archive still holds.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), live AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE readiness < 'active' AND start_after > c.now) AS deferred,
           count(*) FILTER (WHERE readiness < 'active') AS queued,
           count(*) FILTER (WHERE readiness = 'active') AS active,
           count(*) FILTER (WHERE readiness = 'ended') AS blocking,
           count(*) FILTER (WHERE readiness < 'active' AND attempt > 0) AS retries,
           min(start_after) FILTER (WHERE readiness < 'active' AND start_after <= c.now) AS oldest
    FROM trioboss.live_job_common, clock c WHERE queue = :queue::text
), ended AS MATERIALIZED (
    SELECT (SELECT count(*) FROM trioboss.archive WHERE queue = :queue) AS all,
           (SELECT count(*) FROM trioboss.archive WHERE queue = :queue AND outcome = 'cancelled' AND outcome <> 'completed') AS cancelled,
           (SELECT count(*) FROM trioboss.archive WHERE queue = :queue AND outcome = 'failed' AND outcome <> 'completed') AS failed
)
SELECT l.deferred, l.queued, l.queued - l.deferred, l.active, l.blocking + e.failed, e.all - e.cancelled - e.failed, e.cancelled,
       (SELECT count(*) FROM trioboss.live_job d
        WHERE d.queue = q.dead_letter AND d.readiness < 'active' AND d.notes #>> '{source,queue}' = :queue),
       l.retries, coalesce(extract(epoch FROM c.now - l.oldest), 0)::float8, q.paused
FROM trioboss.queue q, live l, ended e, clock c
WHERE q.name = :queue;
