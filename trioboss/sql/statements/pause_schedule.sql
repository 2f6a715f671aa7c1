-- Stop or resume a schedule. It fires for nothing that was due while it was paused. Returns its queue, or no row.
UPDATE trioboss.schedule SET paused = :paused::boolean, updated_on = coalesce(:now::timestamptz, now())
WHERE queue = :queue::text AND key = :key::text
RETURNING queue, trioboss.notify('*schedules');
