-- Remove a schedule. Returns its queue, or no row.
DELETE FROM trioboss.schedule WHERE queue = :queue::text AND key = :key::text
RETURNING queue, pg_notify('trioboss', '*schedules');
