-- Keys of a queue in which jobs of a key run one at a time: first (part 0) those that a failed job blocks, after the
-- backlog `after_blocked`; then (part 1) others with waiting jobs, after the backlog `after`. With `after` part 0 is
-- over. For each key the owner, and how many jobs wait behind it, up to `most`. Part 1 goes from backlog to backlog, at
-- most 1,000 of them: a row of a blocked key in part 1 is only the point where it stopped.
WITH RECURSIVE blocked AS MATERIALIZED (
    SELECT j.owner AS backlog FROM trioboss.live_job j
    WHERE j.queue = :queue::text AND j.owner > coalesce(:after_blocked::text, '') AND :after::text IS NULL AND
\ir fragments/blocks_key.sql
    ORDER BY j.owner LIMIT :limit::bigint
), waiting (backlog, is_blocked, n, seen) AS (
    SELECT coalesce(:after, '') COLLATE "C", true, 0, 0
    UNION ALL
    SELECT f.backlog, b.is_blocked, w.n + (NOT b.is_blocked)::int, w.seen + 1
    FROM waiting w
    CROSS JOIN LATERAL (SELECT j.backlog FROM trioboss.live_job j
                        WHERE j.queue = :queue AND j.readiness = 'waiting' AND j.backlog > w.backlog
                        ORDER BY j.backlog LIMIT 1) f
    CROSS JOIN LATERAL (SELECT EXISTS (
        SELECT FROM trioboss.live_job o WHERE o.queue = :queue AND o.owner = f.backlog AND
\ir fragments/blocks_key.sql
        ) AS is_blocked) b
    WHERE w.n < :limit AND w.seen < 1000
), found AS (
    SELECT 0 AS part, backlog FROM blocked
    UNION ALL
    SELECT 1, backlog FROM waiting WHERE NOT is_blocked OR seen = 1000
)
SELECT f.part, f.backlog, substr(f.backlog, 5) AS key, coalesce(o.readiness = 'ended', false) AS blocked, o.id, o.readiness::text,
       o.since, n.n
FROM found f
LEFT JOIN LATERAL (
    SELECT j.id, j.readiness, coalesce((j.notes ->> 'failed_on')::timestamptz, j.started_on, j.start_after) AS since
    FROM trioboss.live_job j WHERE j.queue = :queue AND j.owner = f.backlog
) o ON true
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j WHERE j.queue = :queue AND j.readiness = 'waiting' AND j.backlog = f.backlog LIMIT :most::bigint) j) n
ORDER BY f.part, f.backlog;
