-- What stands between a live job and its start: its own readiness, its queue, the owner of its key or the first in its
-- backlog, and who could run it.
SELECT j.readiness::text, j.start_after, j.started_on, j.worker, j.key, q.policy, q.paused,
       (SELECT count(*) FROM trioboss.idle_dispatcher s WHERE s.queue = j.queue) AS idle,
       (SELECT count(*) FROM trioboss.worker w
        WHERE w.gone_since IS NULL AND j.queue LIKE replace(replace(w.queue, '_', '\_'), '*', '%')) AS workers,
       (SELECT count(*) FROM (                   -- two ranges of the index of ready jobs, and not the whole backlog
            (SELECT FROM trioboss.live_job_common r
             WHERE r.queue = j.queue AND r.readiness = 'ready' AND j.readiness = 'ready' AND r.priority > j.priority LIMIT 10001)
            UNION ALL
            (SELECT FROM trioboss.live_job_common r
             WHERE r.queue = j.queue AND r.readiness = 'ready' AND j.readiness = 'ready' AND r.priority = j.priority AND r.seq < j.seq
             LIMIT 10001)) r) AS ahead,
       coalesce(o.id, f.id) AS behind, coalesce(o.state, f.state) AS behind_state,
       coalesce(:now::timestamptz, statement_timestamp()) AS now
FROM trioboss.live_job_common j
JOIN trioboss.queue q ON q.name = j.queue
LEFT JOIN LATERAL (
    SELECT o.id, CASE WHEN o.readiness = 'ended' THEN 'failed' ELSE o.readiness::text END AS state
    FROM trioboss.live_job_common o WHERE o.queue = j.queue AND o.owner = j.backlog AND o.id <> j.id
) o ON true
LEFT JOIN LATERAL (
    SELECT f.id, f.readiness::text AS state FROM trioboss.live_job_common f
    WHERE f.queue = j.queue AND f.backlog = j.backlog AND f.readiness = 'waiting' AND (f.rank, f.seq) < (j.rank, j.seq)
    ORDER BY f.rank, f.seq LIMIT 1
) f ON true
WHERE j.queue = :queue::text AND j.id = :id::uuid;
