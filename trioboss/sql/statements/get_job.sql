-- One job by id, live or ended.
SELECT id, name, data, state::text, priority, attempt, retry_count, retry_limit, retry_delay, retry_backoff, retry_delay_max,
       singleton_key, created_on, start_after, started_on, completed_on, keep_until,
       extract(epoch FROM expire_in)::float8, extract(epoch FROM heartbeat)::float8, heartbeat_on, auto_heartbeat,
       max_lease_extensions, lease_extensions, output, progress, dead_letter, worker, source_name, source_id,
       source_created_on, source_retry_count, seq
FROM trioboss.all_jobs
WHERE name = :queue::text AND id = :id::uuid;
