-- The queues that want a job for an event. Columns as in get_queues.sql.
SELECT q.name, policy, partition, table_name, paused, on_complete, dead_letter, warning_queue_size, retry_limit,
       retry_delay, retry_backoff, retry_delay_max, retry_jitter, extract(epoch FROM retry_window)::float8,
       extract(epoch FROM expire_in)::float8, extract(epoch FROM heartbeat)::float8, auto_heartbeat,
       max_lease_extensions, commit_order, extract(epoch FROM retention)::float8,
       extract(epoch FROM delete_after)::float8, keep_completed, q.created_on, updated_on
FROM trioboss.subscription s JOIN trioboss.queue q ON q.name = s.name
WHERE s.event = :event::text
ORDER BY q.name;
