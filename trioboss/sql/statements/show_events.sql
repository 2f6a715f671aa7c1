-- Recent events, the newest first: attempts that did not complete, jobs that ended, ticks of schedules, workers that
-- started or disappeared, and actions of people. Nothing is kept for it: each part reads the newest rows of its table,
-- by an index where the table is large. `kind`: only events of this kind.
SELECT kind, at, queue, job_id, who, what, error, message
FROM (
    (SELECT 'attempt' AS kind, a.ended_on AS at, a.queue::text AS queue, a.job_id, NULL::text AS who, a.outcome::text AS what,
            a.error ->> 'name' AS error, left(a.error ->> 'message', 300) AS message
     FROM trioboss.attempt a WHERE :kind::text IS NULL OR :kind = 'attempt' ORDER BY a.xid DESC LIMIT :limit::bigint)
    UNION ALL
    (SELECT 'job', a.completed_on, a.queue, a.id, NULL, a.outcome::text, NULL, NULL
     FROM trioboss.archive a WHERE :kind IS NULL OR :kind = 'job' ORDER BY a.xid DESC LIMIT :limit)
    UNION ALL
    (SELECT 'tick', t.fired_on, s.queue, t.job_id, s.key, 'fired', NULL, NULL
     FROM (SELECT queue, key FROM trioboss.schedule ORDER BY queue, key LIMIT 1000) s
     CROSS JOIN LATERAL (SELECT fired_on, job_id FROM trioboss.tick
                         WHERE queue = s.queue AND key = s.key ORDER BY due DESC LIMIT 5) t
     WHERE :kind IS NULL OR :kind = 'tick')
    UNION ALL
    (SELECT 'worker', e.at, w.queue, NULL, w.name, e.what, NULL, NULL
     FROM (SELECT queue, name, started_on, gone_since FROM trioboss.worker ORDER BY id LIMIT 1000) w
     CROSS JOIN LATERAL (VALUES (w.started_on::timestamptz, 'started'), (w.gone_since::timestamptz, 'gone')) e (at, what)
     WHERE e.at IS NOT NULL AND (:kind IS NULL OR :kind = 'worker'))
    UNION ALL
    (SELECT 'action', a.at, a.queue, NULL, a.who, a.action, NULL,
            a.affected || ' of ' || a.requested || CASE WHEN a.requested = 1 THEN ' job' ELSE ' jobs' END
     FROM trioboss.audit a WHERE :kind IS NULL OR :kind = 'action' ORDER BY a.id DESC LIMIT :limit)
) e
ORDER BY at DESC LIMIT :limit;
