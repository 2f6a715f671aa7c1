-- One queue by name, or all of them.
SELECT name, policy, partition, table_name, paused, on_complete, dead_letter, warning_queue_size, retry_limit,
       retry_delay, retry_backoff, retry_delay_max, retry_jitter, extract(epoch FROM retry_window)::float8,
       extract(epoch FROM expire_in)::float8, extract(epoch FROM heartbeat)::float8, auto_heartbeat,
       max_lease_extensions, commit_order, extract(epoch FROM retention)::float8,
       extract(epoch FROM delete_after)::float8, keep_completed, created_on, updated_on
FROM trioboss.queue
WHERE :queue::text IS NULL OR name = :queue
ORDER BY name;
