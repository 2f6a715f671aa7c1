-- Make live jobs of those in `ended`, which were in the archive, with the policy and the backlog they have now (`rule`,
-- `backlog`), and what is new of each: `starts`, `retries`, `next_options`, `next_notes`. One whose policy slot is
-- taken stays there.
revived AS (
    INSERT INTO trioboss.live_job_common (
        seq, created_on, start_after, id, priority, rank, attempt, retry_count, readiness, queue, key, backlog, slot, unique_key,
        started_on, options, data, notes)
    SELECT seq, created_on, starts, id, priority, trioboss.backlog_rank(rule, priority), attempt, retries,
           trioboss.queued_readiness(starts, now, backlog), queue, key, backlog, trioboss.queued_slot(rule, key, attempt),
           notes ->> 'unique_key', started_on, next_options, data, next_notes
    FROM ended
    ORDER BY key, seq
    ON CONFLICT DO NOTHING
    RETURNING id, seq, priority, backlog, readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, :queue, backlog FROM revived WHERE readiness = 'waiting'
), moved AS (
    DELETE FROM trioboss.archive WHERE queue = :queue AND id = ANY (ARRAY (SELECT id FROM revived))
)
