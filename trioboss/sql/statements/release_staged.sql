-- Turn a staged load into jobs, all in one commit. Rows whose place is taken under the queue's policy are left out.
-- Order is the order of the load, except where keys are unique: there it is the order of keys, so that two loads
-- never wait for each other in a circle. Returns how many became jobs, and with `keep_ids` which.
WITH fit AS MATERIALIZED (
    SELECT q.*, t.now
    FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now) t
    WHERE q.name = :queue::text
), turn AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock(w.lock)) AS waited
    FROM (
        SELECT DISTINCT trioboss.turn(:queue, s.singleton_key) AS lock
        FROM trioboss.staging s, fit
        WHERE s.load = :load::uuid AND fit.policy = 'key_strict_fifo' AND fit.commit_order
        ORDER BY 1
    ) w
), staged AS MATERIALIZED (
    SELECT s.*, coalesce(s.start_after, f.now + coalesce(s.delay, 0) * interval '1 s') AS starts, f.now, f.policy, f.keyed,
           f.retry_limit, f.retry_delay, f.retry_backoff, f.retry_delay_max, f.retry_jitter, f.retry_window, f.expire_in,
           f.heartbeat, f.auto_heartbeat, f.max_lease_extensions, f.retention, f.delete_after, f.dead_letter,
           coalesce(s.options, '{}') AS o
    FROM trioboss.staging s, fit f, turn
    WHERE s.load = :load
), released AS (
    INSERT INTO trioboss.job_common (
        id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
        start_after, singleton_key, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on, keep_until,
        delete_after, dead_letter, policy, gate)
    SELECT id, :queue, coalesce(priority, 0), data,
           coalesce((o ->> 'retry_limit')::int, retry_limit), coalesce((o ->> 'retry_delay')::float8, retry_delay),
           coalesce((o ->> 'retry_backoff')::boolean, retry_backoff),
           coalesce((o ->> 'retry_delay_max')::float8, retry_delay_max),
           coalesce((o ->> 'retry_jitter')::float8, retry_jitter),
           coalesce((o ->> 'retry_window')::float8 * interval '1 s', retry_window),
           starts, singleton_key,
           coalesce((o ->> 'expire_in')::float8 * interval '1 s', expire_in),
           coalesce((o ->> 'heartbeat')::float8 * interval '1 s', heartbeat),
           coalesce((o ->> 'auto_heartbeat')::boolean, auto_heartbeat),
           coalesce((o ->> 'max_lease_extensions')::int, max_lease_extensions), now,
           greatest(starts, now) + coalesce((o ->> 'retention')::float8 * interval '1 s', retention),
           coalesce((o ->> 'delete_after')::float8 * interval '1 s', delete_after),
           coalesce(o ->> 'dead_letter', dead_letter), policy,
           CASE WHEN starts > now THEN 3 WHEN keyed THEN 1 ELSE 0 END
    FROM staged
    ORDER BY CASE WHEN policy IN ('short', 'stately', 'exclusive') THEN singleton_key END, position
    ON CONFLICT DO NOTHING
    RETURNING id
), emptied AS (
    DELETE FROM trioboss.staging WHERE load = :load
)
SELECT count(*), array_agg(id) FILTER (WHERE :keep_ids::boolean) FROM released;
