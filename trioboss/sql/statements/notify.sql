-- Notify the other bosses.
SELECT trioboss.notify(:payload::text), set_config('synchronous_commit', 'off', true);
