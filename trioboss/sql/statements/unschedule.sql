-- Remove a schedule. Returns its queue, or no row.
DELETE FROM trioboss.schedule WHERE name = :queue::text AND key = :key::text
RETURNING name, pg_notify('trioboss', '*schedules');
