-- Fail the jobs in `lease` for good, with `reason`, and without their options, notes and data that no session could read.
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
), archived AS (
    INSERT INTO trioboss.archive (
        seq, created_on, start_after, started_on, completed_on, id, worker, priority, attempt, retry_count, outcome,
        policy, queue, key, options, data, output, notes)
    SELECT l.seq, l.created_on, l.start_after, l.started_on, t.now, l.id, l.worker, l.priority, l.attempt, l.retry_count, 'failed',
           t.policy::trioboss.policy, l.queue, l.key, NULL, trioboss.readable(l.data), :reason::jsonb, NULL
    FROM lease l, terms t
    WHERE t.policy <> 'key_strict_fifo' OR l.owner IS NULL
)
