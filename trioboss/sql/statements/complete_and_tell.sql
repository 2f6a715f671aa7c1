-- complete.sql for a queue that wants to hear of its completions: every job that ends here leaves a completion
-- job in the queue named after it, with what was asked and what came out. The workers there are told at once.
WITH asked AS MATERIALIZED (
    SELECT on_complete, keep_completed FROM trioboss.queue WHERE name = :queue::text
), ended AS (
    DELETE FROM trioboss.job_common
    WHERE name = :queue AND id = ANY (:ids::uuid[]) AND state = 'active'
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
), completion AS (
    INSERT INTO trioboss.job (id, name, data, start_after, created_on)
    SELECT gen_random_uuid(), q.name, jsonb_build_object(
               'request', jsonb_build_object('id', e.id, 'name', e.name, 'data', e.data),
               'response', nullif(:leases::jsonb -> e.id::text -> 2, 'null'), 'failed', false, 'state', 'completed',
               'createdOn', e.created_on, 'startedOn', e.started_on,
               'completedOn', coalesce(:now, statement_timestamp()), 'retryCount', e.retry_count),
           coalesce(:now, statement_timestamp()), coalesce(:now, statement_timestamp())
    FROM ended e, trioboss.queue q
    WHERE q.name = '__state__completed__' || :queue
    ORDER BY e.seq
    RETURNING name
)
SELECT e.id, a.on_complete, (SELECT count(pg_notify('trioboss', name)) FROM (SELECT DISTINCT name FROM completion) n)
FROM asked a LEFT JOIN ended e ON true;
