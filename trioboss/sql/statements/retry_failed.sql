-- Fail attempts whose jobs may be tried again: they are queued again, after their retry delay. The first half of
-- failing; fail.sql follows in the same transaction and ends what this leaves.
--
-- Fenced as in complete.sql. `failures` maps ids to [error, delay, dead, outcome]: `delay` overrides the retry delay,
-- `dead` skips the retries, `outcome` is what the history calls this end.
-- A job is left to fail.sql if its retries are used up, or if another job has taken the policy slot that it would need:
-- stately allows one job of a key that waits for a retry, send_singleton one queued job. A lost job spends a retry, but
-- needs no policy slot: if its slot is taken, it is queued without one, as in release.sql. A job of strict FIFO keeps
-- its key.
-- `handlers_to_cancel` as in complete.sql.
-- Rows are locked first and updated by id, because a heartbeat since our snapshot may have moved the row.
-- OFFSET 0: the failures are searched for each job once, and not for each column.
WITH terms AS MATERIALIZED (
    SELECT *, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), lease AS MATERIALIZED (
    SELECT * FROM trioboss.live_job_common
    WHERE
\ir fragments/active_leases.sql
    FOR UPDATE
), failure AS MATERIALIZED (
    SELECT j.*, t.now, t.policy, f.failure -> 0 AS error, coalesce(f.failure ->> 3, 'failed') AS failed_as,
           coalesce((j.options ->> 'retry_limit')::int, t.retry_limit) AS retry_limit,
           -- Not later than in a hundred years, however often a delay was doubled.
           least(3155760000, coalesce((f.failure ->> 1)::float8, trioboss.retry_delay(
               coalesce((j.options ->> 'retry_delay')::float8, t.retry_delay),
               coalesce((j.options ->> 'retry_backoff')::boolean, t.retry_backoff),
               coalesce((j.options ->> 'retry_delay_max')::float8, t.retry_delay_max),
               coalesce((j.options ->> 'retry_jitter')::float8, t.retry_jitter),
               coalesce((j.options ->> 'retry_multiplier')::float8, t.retry_multiplier), n.failures, random()))) AS delay,
           n.failures, coalesce((f.failure ->> 2)::boolean, false) AS dead
    FROM lease j, terms t, LATERAL (SELECT :failures::jsonb -> j.id::text AS failure OFFSET 0) f, LATERAL (
        SELECT CASE WHEN (j.notes ->> 'failed_on')::timestamptz < t.now - interval '1 s'
                         * coalesce((j.options ->> 'retry_window')::float8, t.retry_window)
                    THEN 1 ELSE coalesce((j.notes ->> 'failures')::int, 0) + 1 END AS failures
    ) n
), retried AS MATERIALIZED (
    SELECT f.*, f.now + f.delay * interval '1 s' AS next_start,
           CASE f.policy WHEN 'stately' THEN CASE WHEN NOT p.slot_taken THEN trioboss.queued_slot(f.policy, f.key, f.attempt) END
                         ELSE f.slot END AS next_slot,
           trioboss.kept_owner(f.policy, f.owner) AS next_owner,
           NOT p.unique_key_taken AND row_number() OVER (PARTITION BY coalesce(f.unique_key, f.id::text) ORDER BY f.seq) = 1 AS first
    FROM failure f, LATERAL (
        SELECT f.policy = 'stately' AND EXISTS (
                   SELECT FROM trioboss.live_job_common o
                   WHERE o.queue = :queue AND o.slot = 'retry:' || coalesce(f.key, '')) AS slot_taken,
               starts_with(f.unique_key, 'started:') IS TRUE AND EXISTS (
                   SELECT FROM trioboss.live_job_common o
                   WHERE o.queue = :queue AND o.unique_key = f.unique_key AND o.readiness < 'active') AS unique_key_taken
    ) p
    WHERE NOT f.dead AND f.retry_count < f.retry_limit AND (f.failed_as = 'lost' OR NOT (p.slot_taken OR p.unique_key_taken))
), queued AS (
    UPDATE trioboss.live_job_common j
    SET readiness = trioboss.queued_readiness(r.next_start, r.now, nullif(r.backlog, r.next_owner)), slot = r.next_slot,
        owner = r.next_owner, start_after = r.next_start, retry_count = j.retry_count + 1, worker = NULL,
        unique_key = CASE WHEN r.first OR starts_with(j.unique_key, 'started:') IS NOT TRUE THEN j.unique_key END,
        expires_on = NULL, heartbeat = NULL, heartbeat_on = NULL, notes = coalesce(j.notes, '{}')
            || jsonb_build_object('error', r.error, 'failures', r.failures, 'failed_on', r.now)
    FROM retried r
    WHERE j.queue = :queue AND j.id = ANY (ARRAY (SELECT id FROM retried WHERE first OR failed_as = 'lost')) AND r.id = j.id
    RETURNING j.id
), remembered AS (
    INSERT INTO trioboss.attempt (job_id, queue, key, attempt, worker, started_on, ended_on, outcome, error)
    SELECT id, queue, key, attempt, worker, started_on, now, failed_as, nullif(error, 'null') FROM retried WHERE first OR failed_as = 'lost'
)
SELECT e.id, 'retry',
\ir fragments/cancel_handlers.sql
FROM queued q JOIN lease e ON e.id = q.id;
