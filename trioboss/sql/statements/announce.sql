-- Tell the other bosses something.
SELECT pg_notify('trioboss', :message::text), set_config('synchronous_commit', 'off', true);
