-- The schedules of one queue, or all of them.
SELECT name, key, cron, timezone, missed, data, options, created_on, updated_on
FROM trioboss.schedule
WHERE :queue::text IS NULL OR name = :queue
ORDER BY name, key;
