-- Notify the other bosses.
SELECT pg_notify('trioboss', :payload::text), set_config('synchronous_commit', 'off', true);
