-- Jobs of a queue, live and ended, in order of sending. Every filter that is null lets all pass; `after` is the seq
-- of the last job of the page before.
SELECT id, name, data, state::text, priority, attempt, retry_count, retry_limit, retry_delay, retry_backoff, retry_delay_max,
       singleton_key, created_on, start_after, started_on, completed_on, keep_until,
       extract(epoch FROM expire_in)::float8, extract(epoch FROM heartbeat)::float8, heartbeat_on, auto_heartbeat,
       max_lease_extensions, lease_extensions, output, progress, dead_letter, worker, source_name, source_id,
       source_created_on, source_retry_count, seq
FROM trioboss.all_jobs
WHERE name = :queue::text
  AND (:state::text IS NULL OR state = :state::text::trioboss.job_state)
  AND (:singleton_key::text IS NULL OR singleton_key = :singleton_key)
  AND (:source_id::uuid IS NULL OR source_id = :source_id)
  AND (:data::jsonb IS NULL OR data @> :data)
  AND (:after::bigint IS NULL OR seq > :after)
ORDER BY seq
LIMIT :limit::bigint;
