-- Admit jobs of a keyed queue: the first of each backlog without an owner becomes ready and owns its key, at most
-- `limit` and within the bounds of priority; highest priority first or, unless `by_priority`, in order of sending.
-- For claims that admit_and_claim.sql cannot serve: with bounds of priority, in order of sending, or in the caller's
-- transaction, which must not hold the admission lock; and before claim_early.sql.
-- Runs after lock_admission.sql, as admit_and_claim.sql does, and answers checks by the same rules.
-- With `max_priority` the first of those up to it is admitted, if there is one; strict FIFO lets no job pass another.
-- IS NOT TRUE lets the planner hash the backlogs, as in fragments/fence.sql; ctids are explained in the README.
-- Returns whether a first job was just being changed, and the position after which a call may find more.
WITH terms AS MATERIALIZED (
    SELECT paused OR table_name <> 'live_job_common' AS paused,
           trioboss.backlog_rank(policy, coalesce(:max_priority::int, 2147483647)) AS least_rank
    FROM trioboss.queue WHERE name = :queue::text
),
\ir fragments/checked_backlogs.sql
, head AS MATERIALIZED (                          -- without a first: the backlog is empty, or has an owner
    SELECT c.backlog, c.priorities, f.priority AS first, f.seq AS first_seq, j.row, j.priority, j.seq
    FROM (SELECT backlog, array_agg(priority) AS priorities FROM checked GROUP BY backlog) c
    LEFT JOIN LATERAL (
        SELECT priority, seq
\ir fragments/first_waiting.sql jobs=live_job_common queue=:queue backlog=c.backlog
    ) f ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS row, priority, seq FROM trioboss.live_job_common
        WHERE queue = :queue AND backlog = c.backlog AND readiness = 'waiting' AND f.priority IS NOT NULL
          AND rank >= (SELECT least_rank FROM terms)
        ORDER BY rank, seq LIMIT 1
    ) j ON true
), wanted AS MATERIALIZED (
    SELECT row, priority, seq FROM head
    WHERE priority >= coalesce(:min_priority, -2147483648) AND priority <= coalesce(:max_priority, 2147483647)
), admitted AS (
    UPDATE trioboss.live_job_common SET readiness = 'ready', owner = backlog
    WHERE ctid = ANY (ARRAY (
        SELECT j.row
        FROM (SELECT row FROM wanted ORDER BY CASE WHEN :by_priority::boolean THEN priority END DESC, seq) w, LATERAL (
            SELECT ctid AS row FROM trioboss.live_job_common
            WHERE ctid = w.row AND readiness = 'waiting' FOR UPDATE SKIP LOCKED
        ) j
        LIMIT :limit::bigint
    ))
    RETURNING backlog
), open AS MATERIALIZED (
    SELECT * FROM head WHERE first IS NOT NULL AND (backlog IN (SELECT backlog FROM admitted)) IS NOT TRUE
), answered AS (
    DELETE FROM trioboss.backlog_check WHERE ctid = ANY (ARRAY (
        SELECT c.row FROM checked c LEFT JOIN open o USING (backlog)
        WHERE o.backlog IS NULL OR c.number > 1 OR c.priority IS NULL
           OR (c.priority <> o.first AND c.priority IS DISTINCT FROM o.priority)))
), kept AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT p.seq, p.priority, :queue, o.backlog
    FROM open o, LATERAL (SELECT o.first_seq AS seq, o.first AS priority UNION SELECT o.seq, o.priority) p
    WHERE p.priority IS NOT NULL AND array_position(o.priorities, p.priority) IS NULL
      AND (array_position(o.priorities, NULL) IS NOT NULL OR NOT o.priorities && ARRAY[o.first, o.priority])
)
SELECT least((SELECT count(*) FROM wanted), :limit) > (SELECT count(*) FROM admitted) AS again,
       CASE WHEN (SELECT count(*) FROM admitted) < :limit THEN more_after END AS more_after
FROM read;
