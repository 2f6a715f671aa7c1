-- In how many seconds ripen.sql or place.sql will have something to do in a queue, 0 for now. No row: nothing waits for
-- time, or the queue is paused. After a claim that came back not full, this is how long a dispatcher may sleep.
SELECT greatest(extract(epoch FROM due.first - coalesce(:now::timestamptz, statement_timestamp()))::float8, 0)
FROM (
    SELECT least(
        (SELECT start_after FROM trioboss.job_common
         WHERE name = :queue AND gate = 1 AND gate IN (1, 3) AND state < 'active' ORDER BY start_after LIMIT 1),
        (SELECT start_after FROM trioboss.job_common
         WHERE name = :queue AND gate = 3 AND gate IN (1, 3) AND state < 'active' ORDER BY start_after LIMIT 1)
    ) AS first
    FROM trioboss.queue
    WHERE name = :queue::text AND NOT paused
) due
WHERE due.first IS NOT NULL;
