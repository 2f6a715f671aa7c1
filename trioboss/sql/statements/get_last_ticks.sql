-- The time of the database, and for each schedule that is not paused its last tick; at least one row. Data and options
-- are read by fire_tick.sql, for one schedule at a time.
SELECT coalesce(:now::timestamptz, statement_timestamp()), s.queue, s.key, s.cron, s.timezone, s.missed, NULL, '{}'::jsonb,
       s.created_on, s.updated_on, t.due
FROM (SELECT) one
LEFT JOIN trioboss.schedule s ON NOT s.paused
LEFT JOIN LATERAL (
    SELECT due FROM trioboss.tick WHERE queue = s.queue AND key = s.key ORDER BY due DESC LIMIT 1
) t ON true
ORDER BY s.queue, s.key;
