-- One queue by name, several by their names, or all of them.
SELECT name, policy, partition, table_name, revision, paused, on_complete, dead_letter, warning_queue_size, retry_limit,
       retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_multiplier, retry_window, expire_in, heartbeat,
       auto_heartbeat, max_lease_extensions, commit_order, retention, delete_after, keep_completed, created_on, updated_on
FROM trioboss.queue
WHERE (:queue::text IS NULL OR name = :queue) AND (:names::text[] IS NULL OR name = ANY (:names))
ORDER BY name;
