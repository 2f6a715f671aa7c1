-- A dispatcher is saturated: senders need not notify it.
DELETE FROM trioboss.idle_dispatcher
WHERE queue = :queue::text AND worker = :worker::uuid AND set_config('synchronous_commit', 'off', true) IS NOT NULL;
