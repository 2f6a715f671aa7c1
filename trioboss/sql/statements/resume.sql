-- Queue cancelled jobs again, in their old position. A job whose policy slot is taken stays
-- cancelled. Returns the ids that were resumed here.
WITH cancelled AS MATERIALIZED (
    SELECT a.*, t.now, t.policy AS rule, trioboss.key_backlog(t.keyed, a.key) AS backlog, greatest(a.start_after, t.now) AS starts
    FROM trioboss.archive a, (
        SELECT policy, keyed, coalesce(:now::timestamptz, statement_timestamp()) AS now
        FROM trioboss.queue WHERE name = :queue::text
    ) t
    WHERE a.queue = :queue AND a.id = ANY (:ids::uuid[]) AND a.outcome = 'cancelled'
      AND (t.policy <> 'key_strict_fifo' OR a.key IS NOT NULL)
    FOR UPDATE OF a
), resumed AS (
    INSERT INTO trioboss.live_job_common (
        seq, created_on, start_after, id, priority, rank, attempt, retry_count, readiness, queue, key, backlog, slot, unique_key,
        started_on, options, data, notes)
    SELECT seq, created_on, starts, id, priority, trioboss.backlog_rank(rule, priority), attempt, retry_count,
           trioboss.queued_readiness(starts, now, backlog), queue, key, backlog, trioboss.queued_slot(rule, key, attempt),
           notes ->> 'unique_key', started_on, options, data, notes - 'unique_key' - 'singleton_on'
    FROM cancelled
    ORDER BY key, seq
    ON CONFLICT DO NOTHING
    RETURNING id, seq, priority, backlog, readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, :queue, backlog FROM resumed WHERE readiness = 'waiting'
), moved AS (
    DELETE FROM trioboss.archive WHERE queue = :queue AND id = ANY (ARRAY (SELECT id FROM resumed))
)
SELECT id FROM resumed;
