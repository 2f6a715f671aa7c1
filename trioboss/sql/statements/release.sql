-- Give leases back: the jobs are queued again, in their old position and with the retries they had. The number of the
-- attempt stays used up. Their retention starts anew, because it counts time spent waiting. Fenced and locked as in
-- retry_failed.sql.
-- Giving back never fails: a job whose policy slot is taken meanwhile (a retry of stately, a queued job of
-- send_singleton) is queued without one, beside the other. A job of strict FIFO keeps its key. Returns the ids that
-- were released.
WITH terms AS MATERIALIZED (
    SELECT policy, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), lease AS MATERIALIZED (
    SELECT * FROM trioboss.live_job_common
    WHERE
\ir fragments/active_leases.sql
    FOR UPDATE
), released AS MATERIALIZED (
    SELECT j.*, t.now,
           CASE t.policy
               WHEN 'stately' THEN (SELECT n.slot FROM (SELECT trioboss.queued_slot(t.policy, j.key, j.attempt) AS slot) n
                                    WHERE NOT EXISTS (SELECT FROM trioboss.live_job_common o WHERE o.queue = :queue AND o.slot = n.slot))
               ELSE j.slot END AS next_slot,
           trioboss.kept_owner(t.policy, j.owner) AS next_owner,
           CASE WHEN starts_with(j.unique_key, 'started:') IS NOT TRUE
                  OR (row_number() OVER (PARTITION BY j.unique_key ORDER BY j.seq) = 1 AND NOT EXISTS (
                      SELECT FROM trioboss.live_job_common o
                      WHERE o.queue = :queue AND o.unique_key = j.unique_key AND o.readiness < 'active')) THEN j.unique_key END
           AS next_unique_key
    FROM lease j, terms t
), remembered AS (
    INSERT INTO trioboss.attempt (job_id, queue, key, attempt, worker, started_on, ended_on, outcome)
    SELECT id, queue, key, attempt, worker, started_on, now, 'released' FROM released
)
UPDATE trioboss.live_job_common j
SET readiness = trioboss.queued_readiness(NULL, NULL, nullif(r.backlog, r.next_owner)), slot = r.next_slot,
    owner = r.next_owner, unique_key = r.next_unique_key, start_after = r.now, worker = NULL,
    expires_on = NULL, heartbeat = NULL, heartbeat_on = NULL
FROM released r
WHERE j.queue = :queue AND j.id = ANY (ARRAY (SELECT id FROM released)) AND r.id = j.id
RETURNING j.id;
