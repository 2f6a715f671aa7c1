-- Fail the jobs in `lease` for good, with `reason`, and without their options, notes and data that no session could
-- read.
blocking AS (
    UPDATE trioboss.live_job_common j
    SET readiness = 'ended', expires_on = NULL, heartbeat = NULL, heartbeat_on = NULL, options = NULL, data = trioboss.readable(j.data),
        notes = jsonb_build_object('error', :reason::jsonb, 'failed_on', t.now)
    FROM terms t
    WHERE t.policy = 'key_strict_fifo' AND j.queue = :queue AND j.id = ANY (ARRAY (SELECT id FROM lease WHERE owner IS NOT NULL))
    RETURNING j.id
), ended AS (
    DELETE FROM trioboss.live_job_common
    WHERE queue = :queue AND id = ANY (ARRAY (
        SELECT l.id FROM lease l, terms t WHERE t.policy <> 'key_strict_fifo' OR l.owner IS NULL))
), done AS (
    SELECT l.seq, l.created_on, l.start_after, l.started_on, t.now AS ended_on, l.id, l.worker, l.priority, l.attempt, l.retry_count,
           'failed'::trioboss.outcome AS outcome, l.queue, l.key, NULL::jsonb AS options, trioboss.readable(l.data) AS data,
           :reason::jsonb AS output, NULL::text AS unique_key, NULL::jsonb AS last_notes
    FROM lease l, terms t
    WHERE t.policy <> 'key_strict_fifo' OR l.owner IS NULL
),
\ir fragments/archive_done.sql
