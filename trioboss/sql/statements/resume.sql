-- Queue cancelled jobs again, in their old position. A job whose policy slot is taken stays
-- cancelled. Returns the ids that were resumed here.
WITH ended AS MATERIALIZED (
    SELECT a.*, t.now, t.policy AS rule, trioboss.key_backlog(t.keyed, a.key) AS backlog, greatest(a.start_after, t.now) AS starts,
           a.retry_count AS retries, a.options AS next_options, a.notes - 'unique_key' - 'singleton_on' AS next_notes
    FROM trioboss.archive a, (
        SELECT policy, keyed, coalesce(:now::timestamptz, statement_timestamp()) AS now
        FROM trioboss.queue WHERE name = :queue::text
    ) t
    WHERE a.queue = :queue AND a.id = ANY (:ids::uuid[]) AND a.outcome = 'cancelled'
      AND (t.policy <> 'key_strict_fifo' OR a.key IS NOT NULL)
      AND trioboss.readable(a.data) IS NOT DISTINCT FROM a.data
    FOR UPDATE OF a
),
\ir fragments/revived_jobs.sql
SELECT id FROM revived;
