-- One job by id, live or ended, without its data, output and progress, which may be large: see show_payload.sql.
SELECT j.id, j.name, NULL AS data, j.state, j.readiness, j.priority, j.attempt, j.retry_count, j.retry_limit, j.retry_delay,
       j.retry_backoff, j.retry_delay_max, j.retry_jitter, j.retry_multiplier, j.retry_window, j.singleton_key, j.singleton_on,
       j.created_on, j.start_after, j.started_on, j.completed_on, j.expire_in, j.heartbeat, j.heartbeat_on, j.auto_heartbeat,
       j.max_lease_extensions, j.lease_extensions, j.retention, j.delete_after, NULL AS output, NULL AS progress, j.dead_letter,
       j.policy, j.worker, j.source_name, j.source_id, j.source_created_on, j.source_retry_count, j.seq
FROM trioboss.all_jobs j WHERE j.name = :queue::text AND j.id = :id::uuid;
