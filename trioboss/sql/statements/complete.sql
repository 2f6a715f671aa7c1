-- End jobs well. Fenced: `leases` maps each id to [attempt, started_on, output], and an attempt that is not the
-- active one, by number and by start, changes nothing (a null attempt means: whichever is active).
-- The job leaves the hot table for the archive; with keep_completed off it leaves no row at all.
--
-- At least one row if the queue exists: the ids that ended here. Nothing ends while `on_complete` is true: the
-- queue wants completion jobs, and complete_and_tell.sql is the statement to use.
WITH asked AS MATERIALIZED (
    SELECT on_complete, keep_completed FROM trioboss.queue WHERE name = :queue::text
), ended AS (
    DELETE FROM trioboss.job_common
    WHERE name = :queue AND id = ANY (:ids::uuid[]) AND state = 'active' AND (SELECT NOT on_complete FROM asked)
      AND (:leases::jsonb -> id::text ->> 0 IS NULL
           OR (attempt = (:leases::jsonb -> id::text ->> 0)::int
               AND started_on = (:leases::jsonb -> id::text ->> 1)::timestamptz))
    RETURNING *
), kept AS (
    INSERT INTO trioboss.archive (
        id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
        retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
        unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
        created_on, completed_on, keep_until, delete_after, output, progress, dead_letter, policy, worker,
        source_name, source_id, source_created_on, source_retry_count, seq, attempt)
    SELECT id, name, priority, data, 'completed', retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
           retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
           unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
           created_on, coalesce(:now::timestamptz, statement_timestamp()), keep_until, delete_after,
           nullif(:leases::jsonb -> id::text -> 2, 'null'), progress, dead_letter, policy, worker,
           source_name, source_id, source_created_on, source_retry_count, seq, attempt
    FROM ended
    WHERE (SELECT keep_completed FROM asked)
)
SELECT e.id, a.on_complete FROM asked a LEFT JOIN ended e ON true;
