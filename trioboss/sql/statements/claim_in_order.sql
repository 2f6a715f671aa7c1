-- claim.sql in order of sending alone, whatever the priorities. The ready index is ordered by priority first, so this
-- visits each priority in use once and takes the oldest of all: its work grows with the number of priorities.
-- Up to 100 jobs of a priority that somebody else holds are passed by; the job behind them has its turn, too.
WITH RECURSIVE asked AS MATERIALIZED (
    SELECT policy, paused, coalesce(:now::timestamptz, clock_timestamp()) AS now
    FROM trioboss.queue WHERE name = :queue::text
), level (priority) AS (
    (SELECT priority FROM trioboss.job_common
     WHERE name = :queue AND gate = 0 AND state < 'active' AND priority <= coalesce(:max_priority::int, 2147483647)
     ORDER BY priority DESC LIMIT 1)
    UNION ALL
    SELECT lower.priority
    FROM level, LATERAL (
        SELECT priority FROM trioboss.job_common
        WHERE name = :queue AND gate = 0 AND state < 'active' AND priority < level.priority
        ORDER BY priority DESC LIMIT 1
    ) lower
), oldest AS MATERIALIZED (
    SELECT j.id, j.priority, j.seq
    FROM level, LATERAL (
        SELECT id, priority, seq FROM trioboss.job_common
        WHERE name = :queue AND gate = 0 AND state < 'active' AND priority = level.priority
        ORDER BY seq LIMIT :limit::bigint + 100
    ) j
    WHERE level.priority >= coalesce(:min_priority::int, -2147483648) AND (SELECT NOT paused FROM asked)
    ORDER BY j.seq
), picked AS MATERIALIZED (
    SELECT ARRAY (
        SELECT j.ctid
        FROM oldest o, LATERAL (
            SELECT ctid FROM trioboss.job_common
            WHERE name = :queue AND priority = o.priority AND seq = o.seq AND id = o.id AND gate = 0 AND state < 'active'
            FOR UPDATE SKIP LOCKED
        ) j
        LIMIT :limit
    ) AS jobs
), claimed AS (
    UPDATE trioboss.job_common
    SET state = 'active', worker = :worker::uuid, attempt = attempt + 1, lease_extensions = 0,
        started_on = (SELECT now FROM asked), heartbeat_on = (SELECT now FROM asked)
    WHERE ctid = ANY ((SELECT jobs FROM picked)::tid[])
    RETURNING *
)
SELECT p.again, p.policy, c.id, c.name, c.data, c.state::text, c.priority, c.attempt, c.retry_count, c.retry_limit,
       c.retry_delay, c.retry_backoff, c.retry_delay_max, c.singleton_key, c.created_on, c.start_after, c.started_on,
       c.completed_on, c.keep_until, extract(epoch FROM c.expire_in)::float8, extract(epoch FROM c.heartbeat)::float8,
       c.heartbeat_on, c.auto_heartbeat, c.max_lease_extensions, c.lease_extensions, c.output, c.progress,
       c.dead_letter, c.worker, c.source_name, c.source_id, c.source_created_on, c.source_retry_count, c.seq
FROM (
    SELECT (SELECT policy FROM asked) AS policy,
           CASE WHEN :lazy::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit,
           (SELECT cardinality(jobs) FROM picked) > (SELECT count(*) FROM claimed) AS again
) p
LEFT JOIN claimed c ON true
ORDER BY c.seq;
