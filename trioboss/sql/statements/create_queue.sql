-- Make a queue, and its own table if it asks for one. Returns the name, or no row if the queue exists. It waits for
-- another session that makes a queue of that name, and names no table of jobs, which would be locked meanwhile.
WITH made AS (
    INSERT INTO trioboss.queue (
        name, policy, partition, table_name, dead_letter, warning_queue_size, retry_limit, retry_delay, retry_backoff,
        retry_delay_max, retry_jitter, retry_multiplier, retry_window, expire_in, heartbeat, auto_heartbeat, max_lease_extensions,
        commit_order, retention, delete_after, keep_completed)
    VALUES (
        :queue::text, :policy::text, :partition::boolean, :table_name::text, :dead_letter::text,
        :warning_queue_size::int, :retry_limit::int, :retry_delay::float8, :retry_backoff::boolean,
        :retry_delay_max::float8, :retry_jitter::float8, :retry_multiplier::float8, :retry_window::float8,
        :expire_in::float8, :heartbeat::float8,
        :auto_heartbeat::boolean, :max_lease_extensions::int, :commit_order::boolean, :retention::float8,
        :delete_after::float8, :keep_completed::boolean)
    ON CONFLICT DO NOTHING
    RETURNING name, table_name
)
SELECT name, trioboss.set_up_queue(name, table_name) FROM made;
