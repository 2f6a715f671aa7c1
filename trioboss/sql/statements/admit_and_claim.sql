-- The claim of a keyed queue: lease up to `limit` of the jobs that are ready, or first in a backlog without an owner,
-- highest priority first, then in order of sending. A claimed job owns its key. Runs after lock_admission.sql in the
-- same short transaction, so no other session admits jobs of this queue, and the snapshot is newer than the lock.
--
-- A check is deleted if its backlog is empty or has an owner: any change of that leaves a new check. If the first job
-- of a backlog could be claimed, and is not, because `limit` is reached, one check stays, with the priority of that
-- job.
-- It never waits for a row, and never passes over the first of a backlog: `again` says that one was just being changed.
-- Ready jobs and other backlogs go on beside it, for as long as a caller's transaction may keep such a row.
-- IS TRUE and IS NOT TRUE let the planner hash the backlogs, as in fragments/fence.sql; for ctids see the README.
-- `more_after`: a call with that position as `after_rank` and `after_seq` may find more.
WITH
\ir fragments/lease_terms.sql
,
\ir fragments/checked_backlogs.sql
, head AS MATERIALIZED (                          -- without a row: the backlog is empty, or has an owner
    SELECT c.backlog, c.priorities, j.row, j.priority, j.seq
    FROM (SELECT backlog, array_agg(priority) AS priorities FROM checked GROUP BY backlog) c LEFT JOIN LATERAL (
        SELECT ctid AS row, priority, seq
\ir fragments/first_waiting.sql jobs=live_job_common queue=:queue backlog=c.backlog
    ) j ON true
), ready AS MATERIALIZED (
    SELECT ctid AS row, priority, seq FROM trioboss.live_job_common
    WHERE queue = :queue AND readiness = 'ready' AND (SELECT NOT paused FROM terms)
    ORDER BY priority DESC, seq LIMIT :limit::bigint
    FOR UPDATE SKIP LOCKED
), wanted AS MATERIALIZED (
    SELECT row, priority, seq FROM head WHERE row IS NOT NULL UNION ALL SELECT row, priority, seq FROM ready
), picked AS MATERIALIZED (
    SELECT array_agg(row) AS jobs, array_agg(size) AS sizes, sum(size) AS size
    FROM (
        SELECT j.* FROM (SELECT row FROM wanted ORDER BY priority DESC, seq) w, LATERAL (
            SELECT ctid AS row, trioboss.answer_size(size, data, options, notes) AS size FROM trioboss.live_job_common
            WHERE ctid = w.row AND readiness IN ('waiting', 'ready') FOR UPDATE SKIP LOCKED
        ) j LIMIT :limit
    ) j
), found AS MATERIALIZED (SELECT least((SELECT count(*) FROM wanted), :limit) AS jobs, more_after, left_seq FROM read),
\ir fragments/lease_picked.sql
, answered AS (
    DELETE FROM trioboss.backlog_check WHERE ctid = ANY (ARRAY (
        SELECT c.row FROM checked c JOIN head h USING (backlog)
        WHERE h.row IS NULL OR c.number > 1 OR c.priority IS DISTINCT FROM h.priority
           OR (c.backlog IN (SELECT backlog FROM claimed)) IS TRUE))
), kept AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, :queue, backlog FROM head WHERE row IS NOT NULL AND array_position(priorities, priority) IS NULL
      AND (backlog IN (SELECT backlog FROM claimed)) IS NOT TRUE
)
\ir fragments/claimed_jobs.sql
ORDER BY priority DESC NULLS FIRST, seq;
