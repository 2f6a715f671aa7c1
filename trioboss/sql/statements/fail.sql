-- Fail attempts whose jobs are not tried again, after retry_failed.sql in the same transaction: the jobs fail for good,
-- and leave a copy in their dead letter queue, with the retention and the retries they had. A failed job of strict
-- FIFO stays, and blocks its key.
-- Fenced, locked and called as retry_failed.sql. Returns the ids.
-- OFFSET 0: the failures are searched for each job once, and not for each column.
WITH terms AS MATERIALIZED (
    SELECT *, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), lease AS MATERIALIZED (
    SELECT * FROM trioboss.live_job_common
    WHERE
\ir fragments/active_leases.sql
    FOR UPDATE
), failed AS MATERIALIZED (
    SELECT j.*, t.now AS ended_on, 'failed'::trioboss.outcome AS outcome, nullif(f.failure -> 0, 'null') AS output,
           coalesce(f.failure ->> 3, 'failed') AS failed_as, t.policy = 'key_strict_fifo' AS blocks,
           coalesce(own.name, t.dead_letter) AS dead_letter,
           coalesce(j.notes, '{}') - 'dead_letter' || jsonb_strip_nulls(jsonb_build_object(      -- as it was now, for audits
               'retry_limit', coalesce((j.options ->> 'retry_limit')::int, t.retry_limit),
               'dead_letter', coalesce(own.name, t.dead_letter))) AS last_notes
    FROM lease j CROSS JOIN terms t
    CROSS JOIN LATERAL (SELECT :failures::jsonb -> j.id::text AS failure OFFSET 0) f
    LEFT JOIN trioboss.queue own ON own.name = j.options ->> 'dead_letter'     -- if that one is gone, its queue's
), blocking AS (
    UPDATE trioboss.live_job_common j
    SET readiness = 'ended', expires_on = NULL, heartbeat = NULL, heartbeat_on = NULL,
        notes = f.last_notes || jsonb_build_object('error', f.output, 'failed_on', f.ended_on)
    FROM failed f
    WHERE j.queue = :queue AND j.id = ANY (ARRAY (SELECT id FROM failed WHERE blocks)) AND f.id = j.id
), ended AS (
    DELETE FROM trioboss.live_job_common WHERE queue = :queue AND id = ANY (ARRAY (SELECT id FROM failed WHERE NOT blocks))
), done AS (
    SELECT * FROM failed WHERE NOT blocks
),
\ir fragments/archive_done.sql
, dead_letter AS (
    INSERT INTO trioboss.live_job (queue, priority, data, key, created_on, start_after, options, notes)
    SELECT d.name, f.priority, f.data, CASE WHEN d.policy = 'key_strict_fifo' THEN coalesce(f.key, f.queue) ELSE f.key END,
           f.ended_on, f.ended_on, jsonb_strip_nulls(jsonb_build_object(
               'retry_limit', t.retry_limit, 'retry_delay', t.retry_delay, 'retry_backoff', t.retry_backoff,
               'retry_delay_max', t.retry_delay_max, 'retry_jitter', t.retry_jitter,
               'retry_multiplier', t.retry_multiplier, 'retry_window', t.retry_window,
               'retention', t.retention, 'delete_after', t.delete_after)
               || (coalesce(f.options, '{}') - ARRAY['dead_letter', 'expire_in', 'heartbeat', 'auto_heartbeat', 'max_lease_extensions'])),
           jsonb_build_object('error', f.output, 'source', jsonb_build_object(
               'queue', f.queue, 'id', f.id, 'created_on', f.created_on, 'retry_count', f.retry_count))
    FROM failed f CROSS JOIN terms t JOIN trioboss.queue d ON d.name = f.dead_letter
    ORDER BY f.seq
    ON CONFLICT DO NOTHING
),
\ir fragments/completion_jobs.sql ended=failed outcome='failed'
, remembered AS (
    INSERT INTO trioboss.attempt (job_id, queue, key, attempt, worker, started_on, ended_on, outcome, error)
    SELECT id, queue, key, attempt, worker, started_on, ended_on, failed_as, output FROM failed
)
SELECT e.id, 'failed',
\ir fragments/cancel_handlers.sql
FROM failed e;
