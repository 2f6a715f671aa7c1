-- A dispatcher has more to do than it can take: senders need not wake it.
DELETE FROM trioboss.sleeper
WHERE name = :queue::text AND worker = :worker::uuid AND set_config('synchronous_commit', 'off', true) IS NOT NULL;
