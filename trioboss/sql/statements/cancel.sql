-- Take jobs out: queued ones will not run, and the worker of an active one is told to stop. Their throttle
-- slots become free. Returns the ids that were cancelled here.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), cancelled AS (
    DELETE FROM trioboss.job_common
    WHERE name = :queue::text AND id = ANY (:ids::uuid[]) AND state <= 'active'
    RETURNING *
), archived AS (
    INSERT INTO trioboss.archive (
        id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
        retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
        unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
        created_on, completed_on, keep_until, delete_after, output, progress, dead_letter, policy, worker,
        source_name, source_id, source_created_on, source_retry_count, seq, attempt)
    SELECT id, name, priority, data, 'cancelled', retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
           retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
           unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
           created_on, (SELECT now FROM clock), keep_until, delete_after, output, progress, dead_letter, policy, worker,
           source_name, source_id, source_created_on, source_retry_count, seq, attempt
    FROM cancelled
), remembered AS (
    INSERT INTO trioboss.attempt (job_id, name, attempt, worker, started_on, ended_on, outcome, singleton_key)
    SELECT id, name, attempt, worker, started_on, (SELECT now FROM clock), 'cancelled', singleton_key
    FROM cancelled WHERE state = 'active'
), slots AS (
    DELETE FROM trioboss.throttle
    WHERE job_id = ANY (ARRAY (SELECT id FROM cancelled WHERE singleton_on IS NOT NULL))
)
SELECT id, CASE WHEN state = 'active' THEN pg_notify('trioboss', '*cancel ' || id) END FROM cancelled;
