-- End attempts badly: the job retries, or fails for good and leaves a copy in its dead letter queue.
--
-- Fenced as in complete.sql; `leases` maps each id to [attempt, started_on, error, delay, dead, outcome]: `delay`
-- overrules the job's own retry delay, `dead` skips its retries, `outcome` is what the history calls this end.
-- A job fails for good when its retries are used up, or when the place it would go back to is taken: a stately
-- queue has room for one retry a key, send_singleton for one queued job.
-- A failed job of strict FIFO stays, and blocks its key.
--
-- Rows are locked first, and written by id: whoever changed one since our snapshot (a heartbeat) gave it another ctid.
--
-- Returns id and new state of each job that was active here.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), attempt_over AS MATERIALIZED (
    SELECT j.*, l.lease -> 2 AS error, (l.lease ->> 3)::float8 AS asked_delay,
           coalesce((l.lease ->> 4)::boolean, false) AS dead, coalesce(l.lease ->> 5, 'failed') AS outcome,
           CASE WHEN j.failed_on < (SELECT now FROM clock) - j.retry_window THEN 1 ELSE j.backoff_count + 1 END AS backoffs,
           1 - j.retry_jitter + j.retry_jitter * random() AS chance
    FROM trioboss.job_common j, LATERAL (SELECT :leases::jsonb -> j.id::text AS lease OFFSET 0) l
    WHERE j.name = :queue::text AND j.id = ANY (:ids::uuid[]) AND j.state = 'active'
      AND (l.lease ->> 0 IS NULL
           OR (j.attempt = (l.lease ->> 0)::int AND j.started_on = (l.lease ->> 1)::timestamptz))
    FOR UPDATE OF j
), judged AS MATERIALIZED (
    SELECT o.*,
           -- Not later than in a hundred years, however often a delay was doubled.
           (SELECT now FROM clock) + interval '1 s' * least(3155760000, coalesce(o.asked_delay, CASE
               WHEN o.retry_backoff THEN least(o.retry_delay_max,
                   CASE WHEN o.retry_delay > 0 THEN o.retry_delay ELSE 1 END * 2 ^ least(16, o.backoffs) * o.chance)
               ELSE o.retry_delay * o.chance END)) AS next_start,
           o.dead OR o.retry_count >= o.retry_limit
           OR (o.policy = 'stately' AND (
               SELECT true FROM trioboss.job_common r
               WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(o.singleton_key, '')
                 AND r.state = 'retry' AND r.policy = 'stately' AND r.state <= 'active' LIMIT 1) IS NOT NULL)
           OR (o.unique_until IS NOT DISTINCT FROM 'started' AND (
               row_number() OVER (PARTITION BY o.unique_until, coalesce(o.singleton_key, ''),
                                               o.dead OR o.retry_count >= o.retry_limit ORDER BY o.seq) > 1
               OR (SELECT true FROM trioboss.job_common r
                   WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(o.singleton_key, '')
                     AND r.unique_until = 'started' AND r.state < 'active' LIMIT 1) IS NOT NULL)) AS final
    FROM attempt_over o
), retried AS (
    UPDATE trioboss.job_common j
    SET state = 'retry', start_after = g.next_start, keep_until = g.next_start + (j.keep_until - greatest(j.start_after, j.created_on)),
        output = nullif(g.error, 'null'), retry_count = j.retry_count + 1,
        backoff_count = g.backoffs, failed_on = (SELECT now FROM clock), worker = NULL, heartbeat_on = NULL,
        gate = CASE WHEN g.next_start > (SELECT now FROM clock) THEN 3
                    WHEN j.policy IN ('singleton', 'stately') THEN 1
                    ELSE 0 END
    FROM judged g
    WHERE j.name = :queue AND j.id = ANY (ARRAY (SELECT id FROM judged WHERE NOT final)) AND g.id = j.id
    RETURNING j.id, j.state
), blocking AS (
    UPDATE trioboss.job_common j
    SET state = 'failed', completed_on = (SELECT now FROM clock), output = nullif(g.error, 'null'),
        failed_on = (SELECT now FROM clock), heartbeat_on = NULL
    FROM judged g
    WHERE j.name = :queue AND j.id = ANY (ARRAY (SELECT id FROM judged WHERE final AND policy = 'key_strict_fifo'))
      AND g.id = j.id
    RETURNING j.id, j.state
), ended AS (
    DELETE FROM trioboss.job_common
    WHERE name = :queue AND id = ANY (ARRAY (SELECT id FROM judged WHERE final AND policy <> 'key_strict_fifo'))
    RETURNING id, state
), archived AS (
    INSERT INTO trioboss.archive (
        id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
        retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
        unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
        created_on, completed_on, keep_until, delete_after, output, progress, dead_letter, policy, worker,
        source_name, source_id, source_created_on, source_retry_count, seq, attempt)
    SELECT id, name, priority, data, 'failed', retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
           retry_jitter, retry_window, backoffs, (SELECT now FROM clock), start_after, started_on, singleton_key,
           singleton_on, unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions,
           lease_extensions, created_on, (SELECT now FROM clock), keep_until, delete_after, nullif(error, 'null'),
           progress, dead_letter, policy, worker, source_name, source_id, source_created_on, source_retry_count, seq, attempt
    FROM judged
    WHERE final AND policy <> 'key_strict_fifo'
), post AS MATERIALIZED (
    -- The letters with their queue: the job's own or, if that one is gone, its queue's.
    SELECT g.id AS job_id, d.*
    FROM judged g JOIN trioboss.queue d ON d.name = coalesce(
        (SELECT o.name FROM trioboss.queue o WHERE o.name = g.dead_letter),
        (SELECT o.dead_letter FROM trioboss.queue o WHERE o.name = :queue AND g.dead_letter IS NOT NULL))
    WHERE g.final
), turn AS MATERIALIZED (
    -- Letters to a strict FIFO queue stand in the order of commit, like everything that is sent there (see send.sql).
    -- But a worker never waits for somebody's open transaction: beside one, a letter takes its place without the lock.
    SELECT count(*) FILTER (WHERE pg_try_advisory_xact_lock(w.lock)) AS held
    FROM (
        SELECT DISTINCT trioboss.turn(d.name, coalesce(g.singleton_key, g.name)) AS lock
        FROM judged g JOIN post d ON d.job_id = g.id
        WHERE d.policy = 'key_strict_fifo' AND d.commit_order
        ORDER BY 1
    ) w
), letter AS (
    INSERT INTO trioboss.job (
        id, name, priority, data, output, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter,
        retry_window, start_after, created_on, keep_until, delete_after, singleton_key, expire_in, heartbeat,
        auto_heartbeat, max_lease_extensions, dead_letter, policy, source_name, source_id, source_created_on,
        source_retry_count, gate)
    SELECT gen_random_uuid(), d.name, g.priority, g.data, nullif(g.error, 'null'), g.retry_limit, g.retry_delay,
           g.retry_backoff, g.retry_delay_max, g.retry_jitter, g.retry_window, c.now, c.now,
           c.now + (g.keep_until - greatest(g.start_after, g.created_on)), g.delete_after,
           CASE WHEN d.policy = 'key_strict_fifo' THEN coalesce(g.singleton_key, g.name) ELSE g.singleton_key END,
           d.expire_in, d.heartbeat, d.auto_heartbeat, d.max_lease_extensions, d.dead_letter, d.policy,
           g.name, g.id, g.created_on, g.retry_count, CASE WHEN d.keyed THEN 1 ELSE 0 END
    FROM judged g JOIN post d ON d.job_id = g.id, clock c, turn
    ORDER BY g.seq
    ON CONFLICT DO NOTHING
    RETURNING name
), completion AS (
    INSERT INTO trioboss.job (id, name, data, start_after, created_on)
    SELECT gen_random_uuid(), q.name, jsonb_build_object(
               'request', jsonb_build_object('id', g.id, 'name', g.name, 'data', g.data),
               'response', nullif(g.error, 'null'), 'failed', true, 'state', 'failed', 'createdOn', g.created_on,
               'startedOn', g.started_on, 'completedOn', c.now, 'retryCount', g.retry_count),
           c.now, c.now
    FROM judged g, clock c, trioboss.queue q
    WHERE g.final AND q.name = '__state__completed__' || :queue
    ORDER BY g.seq
    RETURNING name
), remembered AS (
    INSERT INTO trioboss.attempt (job_id, name, attempt, worker, started_on, ended_on, outcome, error, singleton_key)
    SELECT id, name, attempt, worker, started_on, (SELECT now FROM clock), outcome, nullif(error, 'null'), singleton_key
    FROM judged
)
SELECT r.id, r.state::text, (
    SELECT count(pg_notify('trioboss', n.name)) FROM (SELECT name FROM letter UNION SELECT name FROM completion) n
)
FROM (
    SELECT id, state FROM retried
    UNION ALL SELECT id, state FROM blocking
    UNION ALL SELECT id, 'failed' FROM ended
) r;
