-- Lease up to `limit` deferred jobs of a queue whose time has not come, the earliest first. Of a key that takes turns, only
-- the first, and only if none of its jobs is ready, running or in line: so for keyed policies it runs after place.sql,
-- under the same lock. Looks at no more than ten thousand. Rows as in claim.sql.
WITH asked AS MATERIALIZED (
    SELECT policy, keyed, coalesce(:now::timestamptz, clock_timestamp()) AS now
    FROM trioboss.queue WHERE name = :queue::text AND NOT paused
), early AS MATERIALIZED (
    SELECT id, coalesce(singleton_key, '') AS key, start_after, seq,
           CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank,
           policy = 'key_strict_fifo' AND state = 'retry' AS holds           -- a retry of strict FIFO never let go
    FROM trioboss.job_common
    WHERE name = :queue AND gate = 3 AND state < 'active'
      AND (policy = 'key_strict_fifo' OR (priority >= coalesce(:min_priority::int, -2147483648)
                                          AND priority <= coalesce(:max_priority::int, 2147483647)))
    ORDER BY start_after
    LIMIT (SELECT CASE WHEN keyed THEN 10000 ELSE :limit::bigint + 1000 END FROM asked)
), first AS MATERIALIZED (
    SELECT DISTINCT ON (CASE WHEN (SELECT keyed FROM asked) THEN key ELSE id::text END) id, key, start_after, holds
    FROM early
    WHERE (SELECT true FROM asked)
    ORDER BY CASE WHEN (SELECT keyed FROM asked) THEN key ELSE id::text END, holds DESC, rank, seq
), picked AS MATERIALIZED (
    SELECT ARRAY (
        SELECT j.row
        FROM (SELECT * FROM first ORDER BY start_after) f, LATERAL (
            SELECT ctid AS row FROM trioboss.job_common
            -- By its id, and not by an index of gates: so says IS NOT DISTINCT.
            WHERE name = :queue AND id = f.id AND gate IS NOT DISTINCT FROM 3 AND state < 'active'
              AND priority >= coalesce(:min_priority, -2147483648) AND priority <= coalesce(:max_priority, 2147483647)
            FOR UPDATE SKIP LOCKED
        ) j
        WHERE NOT (SELECT keyed FROM asked) OR f.holds OR (
            SELECT true FROM trioboss.job_common h
            WHERE h.name = :queue AND coalesce(h.singleton_key, '') = f.key
              AND h.policy IN ('singleton', 'stately', 'key_strict_fifo')
              AND (h.state = 'active' OR (h.gate = 0 AND h.state < 'active')
                   OR (h.policy = 'key_strict_fifo' AND h.state IN ('retry', 'failed')))
            LIMIT 1
        ) IS NULL AND (
            SELECT true
            FROM (VALUES (1), (2)) g (gate), LATERAL (
                SELECT FROM trioboss.job_common l
                WHERE l.name = :queue AND l.gate = g.gate AND coalesce(l.singleton_key, '') = f.key
                  AND l.gate IN (1, 2) AND l.state < 'active' AND l.policy IN ('singleton', 'stately', 'key_strict_fifo')
                LIMIT 1
            ) l
            LIMIT 1
        ) IS NULL
        LIMIT :limit
    ) AS jobs
), claimed AS (
    UPDATE trioboss.job_common
    SET state = 'active', gate = 0, worker = :worker::uuid, attempt = attempt + 1, lease_extensions = 0,
        started_on = (SELECT now FROM asked), heartbeat_on = (SELECT now FROM asked)
    WHERE ctid = ANY ((SELECT jobs FROM picked)::tid[])
    RETURNING *
)
SELECT false, (SELECT policy FROM trioboss.queue WHERE name = :queue), c.id, c.name, c.data, c.state::text,
       c.priority, c.attempt, c.retry_count, c.retry_limit, c.retry_delay, c.retry_backoff, c.retry_delay_max,
       c.singleton_key, c.created_on, c.start_after, c.started_on, c.completed_on, c.keep_until,
       extract(epoch FROM c.expire_in)::float8, extract(epoch FROM c.heartbeat)::float8, c.heartbeat_on,
       c.auto_heartbeat, c.max_lease_extensions, c.lease_extensions, c.output, c.progress, c.dead_letter, c.worker,
       c.source_name, c.source_id, c.source_created_on, c.source_retry_count, c.seq
FROM (SELECT CASE WHEN :lazy::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit) p
LEFT JOIN claimed c ON true
ORDER BY c.start_after, c.seq;
