-- Bulk load into a queue without unique keys: complete rows, written by store/loading.py.
COPY trioboss.job_common (
    id, data, name, priority, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
    start_after, singleton_key, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on, keep_until,
    delete_after, dead_letter, policy, gate
) FROM STDIN (FORMAT binary);
