-- Give failed jobs one more attempt, now, in their old position; it counts as a retry that the job did not have before,
-- so its retry_limit grows by one, up to the most that an option may be. A job whose policy slot is taken, by the
-- queue's policy or the way it was sent, stays failed. Returns the ids that will be retried. For strict FIFO this
-- unblocks a key.
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
), ended AS MATERIALIZED (
    SELECT a.*, t.now, t.now AS starts, t.policy AS rule, trioboss.key_backlog(t.keyed, a.key) AS backlog,
           least(a.retry_count, 1000000000) + 1 AS retries,
           coalesce(a.options, '{}') || jsonb_build_object('retry_limit', least(1000000000,
               coalesce((a.options ->> 'retry_limit')::int, t.retry_limit) + 1)) AS next_options,
           coalesce(a.notes, '{}') - ARRAY['unique_key', 'retry_limit', 'dead_letter'] || jsonb_build_object('error', a.output)
           AS next_notes
    FROM trioboss.archive a, terms t
    WHERE a.queue = :queue AND a.id = ANY (:ids) AND a.outcome = 'failed' AND (t.policy <> 'key_strict_fifo' OR a.key IS NOT NULL)
      AND trioboss.readable(a.data) IS NOT DISTINCT FROM a.data
    FOR UPDATE OF a
),
\ir fragments/revived_jobs.sql
SELECT id FROM blocking UNION ALL SELECT id FROM revived;
