-- Write down which app declares a schedule. Returns its queue, or no row.
UPDATE trioboss.schedule SET label = :label::text WHERE queue = :queue::text AND key = :key::text RETURNING queue;
