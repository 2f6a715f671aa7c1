-- For each schedule: the time of the database, its cron expression, and the last tick that was fired or skipped; a
-- schedule without a tick counts from its last change.
SELECT s.queue, s.cron, s.timezone, greatest(s.updated_on, (
           SELECT due FROM trioboss.tick t WHERE t.queue = s.queue AND t.key = s.key ORDER BY due DESC LIMIT 1
       )) AS last, statement_timestamp() AS now
FROM trioboss.schedule s
ORDER BY s.queue, s.key;
