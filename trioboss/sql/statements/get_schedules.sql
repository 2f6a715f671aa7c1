-- The schedules of one queue, or all of them.
SELECT queue, key, cron, timezone, missed, trioboss.readable(data), options, created_on, updated_on
FROM trioboss.schedule
WHERE :queue::text IS NULL OR queue = :queue
ORDER BY queue, key;
