-- Turn the rows of a stage into jobs, in the order of the load. For rows whose place cannot be taken, because neither
-- their ids nor their keys can be those of other jobs: if one is taken nevertheless, this fails, and the load with it.
-- `rate` is how many of them may start in a second; `ahead` is how many rows of the load come before these.
-- Writes as many rows as there are jobs.
INSERT INTO trioboss.job_common (
    id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
    start_after, singleton_key, expire_in, heartbeat, auto_heartbeat, max_lease_extensions, created_on, keep_until,
    delete_after, dead_letter, policy, gate)
SELECT s.id, q.name, coalesce(s.priority, 0), s.data,
       coalesce((s.options ->> 'retry_limit')::int, q.retry_limit),
       coalesce((s.options ->> 'retry_delay')::float8, q.retry_delay),
       coalesce((s.options ->> 'retry_backoff')::boolean, q.retry_backoff),
       coalesce((s.options ->> 'retry_delay_max')::float8, q.retry_delay_max),
       coalesce((s.options ->> 'retry_jitter')::float8, q.retry_jitter),
       coalesce((s.options ->> 'retry_window')::float8 * interval '1 s', q.retry_window),
       d.starts, s.singleton_key,
       coalesce((s.options ->> 'expire_in')::float8 * interval '1 s', q.expire_in),
       coalesce((s.options ->> 'heartbeat')::float8 * interval '1 s', q.heartbeat),
       coalesce((s.options ->> 'auto_heartbeat')::boolean, q.auto_heartbeat),
       coalesce((s.options ->> 'max_lease_extensions')::int, q.max_lease_extensions), q.now,
       greatest(d.starts, q.now) + coalesce((s.options ->> 'retention')::float8 * interval '1 s', q.retention),
       coalesce((s.options ->> 'delete_after')::float8 * interval '1 s', q.delete_after),
       coalesce(s.options ->> 'dead_letter', q.dead_letter), q.policy,
       CASE WHEN d.starts > q.now THEN 3 WHEN q.keyed THEN 1 ELSE 0 END
FROM trioboss.stage_row s, (
    SELECT *, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
) q, LATERAL (
    SELECT greatest(s.start_after, q.now, CASE WHEN :rate::float8 IS NOT NULL
                    THEN q.now + interval '1 s' * ((:ahead::bigint + s.position) / :rate) END) AS starts
) d
WHERE s.problem IS NULL
ORDER BY s.position;
