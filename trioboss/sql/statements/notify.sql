-- Notify all bosses of the schema, this one included.
SELECT trioboss.notify(:payload::text), set_config('synchronous_commit', 'off', true);
