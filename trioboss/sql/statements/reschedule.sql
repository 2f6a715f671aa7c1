-- Let queued jobs run now (`run_now`), or change their priority; null leaves either as it is. A deferred job becomes
-- ready or waiting, as in promote_due.sql. A job that waits in a backlog adds a check with its new priority. Returns
-- the ids.
WITH terms AS MATERIALIZED (
    SELECT policy, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), changed AS (
    UPDATE trioboss.live_job_common j
    SET priority = coalesce(:priority::int, j.priority),
        rank = trioboss.backlog_rank((SELECT policy FROM terms), coalesce(:priority, j.priority)),
        start_after = CASE WHEN :run_now::boolean THEN least(j.start_after, (SELECT now FROM terms)) ELSE j.start_after END,
        readiness = CASE WHEN j.readiness <> 'deferred' OR :run_now IS NOT TRUE THEN j.readiness
                         ELSE trioboss.queued_readiness(NULL, NULL, nullif(j.backlog, j.owner)) END
    WHERE j.queue = :queue AND j.id = ANY (:ids::uuid[]) AND j.readiness IN ('deferred', 'waiting', 'ready')
      AND (:run_now::boolean IS NOT TRUE OR j.readiness = 'deferred' OR :priority::int IS NOT NULL)
    RETURNING j.id, j.seq, j.priority, j.backlog, j.readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, :queue, backlog FROM changed WHERE readiness = 'waiting'
)
SELECT id FROM changed;
