-- Give failed jobs one more attempt, now, in their old position; it counts as a retry that the job did not have before, so its
-- retry_limit grows by one, up to the most that an option may be. A job whose slot is taken, by the queue's policy or the
-- way it was sent, stays failed. Returns the ids that will be retried. For strict FIFO this unblocks a key.
WITH terms AS MATERIALIZED (
    SELECT policy, keyed, retry_limit, coalesce(:now::timestamptz, statement_timestamp()) AS now
    FROM trioboss.queue WHERE name = :queue::text
), blocking AS (
    UPDATE trioboss.live_job_common j
    SET readiness = 'ready', retry_count = least(retry_count, 1000000000) + 1, worker = NULL, start_after = (SELECT now FROM terms),
        notes = notes - ARRAY['retry_limit', 'dead_letter'],
        options = coalesce(options, '{}') || jsonb_build_object('retry_limit', least(1000000000,
            coalesce((options ->> 'retry_limit')::int, (SELECT retry_limit FROM terms)) + 1))
    WHERE queue = :queue AND id = ANY (:ids::uuid[]) AND readiness = 'ended'
      AND (unique_key IS NULL OR NOT EXISTS (
          SELECT FROM trioboss.live_job_common o
          WHERE o.queue = :queue AND o.unique_key = j.unique_key
            AND (o.readiness < 'active' OR (o.readiness = 'active' AND starts_with(o.unique_key, 'ended:')))))
    RETURNING id
), failed AS MATERIALIZED (
    SELECT a.*, t.now, t.policy AS rule, trioboss.key_backlog(t.keyed, a.key) AS backlog,
           coalesce(a.options, '{}') || jsonb_build_object('retry_limit', least(1000000000,
               coalesce((a.options ->> 'retry_limit')::int, t.retry_limit) + 1)) AS next_options
    FROM trioboss.archive a, terms t
    WHERE a.queue = :queue AND a.id = ANY (:ids) AND a.outcome = 'failed' AND (t.policy <> 'key_strict_fifo' OR a.key IS NOT NULL)
    FOR UPDATE OF a
), revived AS (
    INSERT INTO trioboss.live_job_common (
        seq, created_on, start_after, id, priority, rank, attempt, retry_count, readiness, queue, key, backlog, slot, unique_key,
        started_on, options, data, notes)
    SELECT seq, created_on, now, id, priority, trioboss.backlog_rank(rule, priority), attempt, least(retry_count, 1000000000) + 1,
           trioboss.queued_readiness(NULL, NULL, backlog), queue, key, backlog, trioboss.queued_slot(rule, key, attempt),
           notes ->> 'unique_key', started_on, next_options, data,
           coalesce(notes, '{}') - ARRAY['unique_key', 'retry_limit', 'dead_letter'] || jsonb_build_object('error', output)
    FROM failed
    ORDER BY key, seq
    ON CONFLICT DO NOTHING
    RETURNING id, seq, priority, backlog
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, :queue, backlog FROM revived WHERE backlog IS NOT NULL
), moved AS (
    DELETE FROM trioboss.archive WHERE queue = :queue AND id = ANY (ARRAY (SELECT id FROM revived))
)
SELECT id FROM blocking UNION ALL SELECT id FROM revived;
