-- Queue cancelled jobs again, in their old place. A job whose place is taken under the queue's policy stays
-- cancelled. Returns the ids that were resumed here.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), cancelled AS MATERIALIZED (
    SELECT * FROM trioboss.archive
    WHERE id = ANY (:ids::uuid[]) AND name = :queue::text AND state = 'cancelled'
    FOR UPDATE
), resumed AS (
    INSERT INTO trioboss.job_common (
        id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
        retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key,
        unique_until, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on, keep_until, delete_after,
        output, progress, dead_letter, policy, source_name, source_id, source_created_on, source_retry_count, seq, attempt, gate)
    SELECT id, name, priority, data, 'created', retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
           retry_jitter, retry_window, backoff_count, failed_on, greatest(start_after, now), started_on, singleton_key,
           unique_until, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on,
           greatest(start_after, now) + (keep_until - greatest(start_after, created_on)), delete_after, output, progress, dead_letter, rule,
           source_name, source_id, source_created_on, source_retry_count, seq, attempt,
           CASE WHEN start_after > now THEN 3 WHEN keyed THEN 1 ELSE 0 END
    FROM cancelled, clock, (SELECT policy AS rule, keyed FROM trioboss.queue WHERE name = :queue) q
    WHERE rule <> 'key_strict_fifo' OR singleton_key IS NOT NULL
    ORDER BY singleton_key, seq
    ON CONFLICT DO NOTHING
    RETURNING id
), moved AS (
    DELETE FROM trioboss.archive WHERE id = ANY (ARRAY (SELECT id FROM resumed)) AND name = :queue
)
SELECT id FROM resumed;
