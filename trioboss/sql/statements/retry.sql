-- Give failed jobs one more try, now, in their old place. A job whose place is taken under the queue's policy
-- stays failed. Returns the ids that will be retried. For strict FIFO this is what unblocks a key.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), blocking AS (
    UPDATE trioboss.job_common
    SET state = 'retry', completed_on = NULL, retry_limit = retry_limit + 1, worker = NULL,
        start_after = (SELECT now FROM clock), gate = 0
    WHERE name = :queue::text AND id = ANY (:ids::uuid[]) AND state = 'failed'
    RETURNING id
), failed AS MATERIALIZED (
    SELECT * FROM trioboss.archive
    WHERE id = ANY (:ids) AND name = :queue AND state = 'failed'
    FOR UPDATE
), revived AS (
    INSERT INTO trioboss.job_common (
        id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
        retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
        unique_until, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on, keep_until, delete_after,
        output, progress, dead_letter, policy, source_name, source_id, source_created_on, source_retry_count, seq, attempt, gate)
    SELECT id, name, priority, data, 'retry', retry_limit + 1, retry_count, retry_delay, retry_backoff, retry_delay_max,
           retry_jitter, retry_window, backoff_count, failed_on, now, started_on, singleton_key, singleton_on,
           unique_until, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on,
           now + (keep_until - start_after), delete_after, output, progress, dead_letter, policy,
           source_name, source_id, source_created_on, source_retry_count, seq, attempt,
           CASE WHEN policy IN ('singleton', 'stately', 'key_strict_fifo') THEN 1 ELSE 0 END
    FROM failed, clock
    ORDER BY singleton_key, seq
    ON CONFLICT DO NOTHING
    RETURNING id
), moved AS (
    DELETE FROM trioboss.archive WHERE id = ANY (ARRAY (SELECT id FROM revived)) AND name = :queue
)
SELECT id FROM blocking UNION ALL SELECT id FROM revived;
