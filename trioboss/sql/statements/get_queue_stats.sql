-- Count the jobs of a queue. Live ones are counted as they are now; ended ones over what the archive still holds.
WITH live AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE state < 'active' AND start_after > coalesce(:now::timestamptz, statement_timestamp())) AS deferred,
           count(*) FILTER (WHERE state < 'active') AS queued,
           count(*) FILTER (WHERE state = 'active') AS active,
           count(*) FILTER (WHERE state = 'failed') AS blocking,
           count(*) FILTER (WHERE state = 'retry') AS retries,
           min(start_after) FILTER (WHERE state < 'active' AND start_after <= coalesce(:now, statement_timestamp())) AS oldest
    FROM trioboss.job_common WHERE name = :queue::text
), ended AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE state = 'completed') AS completed,
           count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE state = 'failed') AS failed
    FROM trioboss.archive WHERE name = :queue
)
SELECT live.deferred, live.queued, live.queued - live.deferred, live.active, live.blocking + ended.failed, ended.completed,
       ended.cancelled, (SELECT count(*) FROM trioboss.job d WHERE d.source_name = :queue AND d.state < 'active'),
       live.retries, coalesce(extract(epoch FROM coalesce(:now, statement_timestamp()) - live.oldest), 0)::float8, q.paused
FROM trioboss.queue q, live, ended
WHERE q.name = :queue;
