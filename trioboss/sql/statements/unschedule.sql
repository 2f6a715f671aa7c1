-- Remove a schedule. Returns its queue, or no row.
DELETE FROM trioboss.schedule WHERE queue = :queue::text AND key = :key::text
RETURNING queue, trioboss.notify('*schedules');
