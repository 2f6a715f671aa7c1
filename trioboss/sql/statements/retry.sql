-- Give failed jobs one more try, now, in their old place; it counts as a retry that the job did not have before.
-- A job whose place is taken, by the queue's policy or the way it was sent, stays failed. Returns the ids that will
-- be retried. For strict FIFO this is what unblocks a key.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), blocking AS (
    UPDATE trioboss.job_common j
    SET state = 'retry', completed_on = NULL, retry_limit = retry_limit + 1, retry_count = retry_count + 1,
        worker = NULL, start_after = (SELECT now FROM clock), gate = 0,
        keep_until = (SELECT now FROM clock) + (keep_until - greatest(start_after, created_on))
    WHERE name = :queue::text AND id = ANY (:ids::uuid[]) AND state = 'failed'
      AND (unique_until IS DISTINCT FROM 'ended' OR (
          SELECT true FROM trioboss.job_common r
          WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(j.singleton_key, '')
            AND r.unique_until = 'ended' AND r.state <= 'active' LIMIT 1) IS NULL)
      AND (unique_until IS DISTINCT FROM 'started' OR (
          SELECT true FROM trioboss.job_common r
          WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(j.singleton_key, '')
            AND r.unique_until = 'started' AND r.state < 'active' LIMIT 1) IS NULL)
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
    SELECT id, name, priority, data, 'retry', retry_limit + 1, retry_count + 1, retry_delay, retry_backoff, retry_delay_max,
           retry_jitter, retry_window, backoff_count, failed_on, now, started_on, singleton_key, singleton_on,
           unique_until, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on,
           now + (keep_until - greatest(start_after, created_on)), delete_after, output, progress, dead_letter, rule,
           source_name, source_id, source_created_on, source_retry_count, seq, attempt, CASE WHEN keyed THEN 1 ELSE 0 END
    FROM failed, clock, (SELECT policy AS rule, keyed FROM trioboss.queue WHERE name = :queue) q
    WHERE rule <> 'key_strict_fifo' OR singleton_key IS NOT NULL
    ORDER BY singleton_key, seq
    ON CONFLICT DO NOTHING
    RETURNING id
), moved AS (
    DELETE FROM trioboss.archive WHERE id = ANY (ARRAY (SELECT id FROM revived)) AND name = :queue
)
SELECT id FROM blocking UNION ALL SELECT id FROM revived;
