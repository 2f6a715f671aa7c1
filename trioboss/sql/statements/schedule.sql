-- Create or replace a schedule. A replaced one starts afresh: it fires for nothing before now.
INSERT INTO trioboss.schedule (queue, key, cron, timezone, missed, data, options, updated_on)
SELECT name, :key::text, :cron::text, :timezone::text, :missed::text, :data::jsonb, :options::jsonb,
       coalesce(:now::timestamptz, now())
FROM trioboss.queue WHERE name = :queue::text
ON CONFLICT (queue, key) DO UPDATE
SET cron = excluded.cron, timezone = excluded.timezone, missed = excluded.missed, data = excluded.data,
    options = excluded.options, updated_on = excluded.updated_on
RETURNING queue, trioboss.notify('*schedules');
