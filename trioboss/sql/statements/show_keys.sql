-- Keys of a queue in which jobs of a key run one at a time: first those that a failed job blocks, then others by name, after
-- the backlog `after`. For each the owner, and how many jobs wait behind it, up to `most`.
WITH RECURSIVE blocked AS MATERIALIZED (
    SELECT j.owner AS backlog FROM trioboss.live_job j
    WHERE j.queue = :queue::text AND j.owner IS NOT NULL AND j.readiness = 'ended' AND :after::text IS NULL
    ORDER BY j.owner LIMIT :limit::bigint
), waiting (backlog, n) AS (                     -- from backlog to backlog, however many jobs each has
    (SELECT j.backlog, 1 FROM trioboss.live_job j
     WHERE j.queue = :queue AND j.readiness = 'waiting' AND j.backlog > coalesce(:after, '') ORDER BY j.backlog LIMIT 1)
    UNION ALL
    SELECT (SELECT j.backlog FROM trioboss.live_job j
            WHERE j.queue = :queue AND j.readiness = 'waiting' AND j.backlog > w.backlog ORDER BY j.backlog LIMIT 1), w.n + 1
    FROM waiting w WHERE w.backlog IS NOT NULL AND w.n < :limit
), found AS (
    SELECT backlog, true AS blocked FROM blocked
    UNION ALL
    SELECT w.backlog, false FROM waiting w WHERE w.backlog IS NOT NULL AND NOT EXISTS (SELECT FROM blocked b WHERE b.backlog = w.backlog)
)
SELECT f.backlog, substr(f.backlog, 5) AS key, f.blocked, o.id, o.readiness::text, o.since, n.n
FROM found f
LEFT JOIN LATERAL (
    SELECT j.id, j.readiness, coalesce((j.notes ->> 'failed_on')::timestamptz, j.started_on, j.start_after) AS since
    FROM trioboss.live_job j WHERE j.queue = :queue AND j.owner = f.backlog
) o ON true
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
    SELECT FROM trioboss.live_job j WHERE j.queue = :queue AND j.readiness = 'waiting' AND j.backlog = f.backlog LIMIT :most::bigint) j) n
ORDER BY f.blocked DESC, f.backlog;
