-- In how many seconds promote_due.sql will have something to do in a queue, 0 for now. No row: no job waits for time,
-- or the queue is paused. After a claim that was not full, a dispatcher may be idle for that long.
SELECT greatest(extract(epoch FROM due.first - coalesce(:now::timestamptz, statement_timestamp()))::float8, 0)
FROM (
    SELECT (SELECT start_after FROM trioboss.live_job_common
            WHERE queue = :queue AND readiness = 'deferred' ORDER BY start_after LIMIT 1) AS first
    FROM trioboss.queue
    WHERE name = :queue::text AND NOT paused
) due
WHERE due.first IS NOT NULL;
