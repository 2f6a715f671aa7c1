-- Promote deferred jobs whose time has come, up to `limit` and at least 1000 of them. In a keyed queue a job joins the
-- backlog of its key, where the trigger backlog_changed leaves a check, unless it still owns its key (a retry of strict
-- FIFO). In all other cases it becomes ready. Never waits for a row. Returns whether there may be more.
WITH due AS MATERIALIZED (
    SELECT ctid AS row FROM trioboss.live_job_common
    WHERE queue = :queue::text AND readiness = 'deferred'
      AND start_after <= coalesce(:now::timestamptz, statement_timestamp())
    ORDER BY start_after
    LIMIT greatest(1000, :limit::bigint)
    FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE trioboss.live_job_common
    SET readiness = trioboss.queued_readiness(NULL, NULL, nullif(backlog, owner))
    WHERE ctid = ANY (ARRAY (SELECT row FROM due))
)
SELECT count(*) >= greatest(1000, :limit) FROM due;
