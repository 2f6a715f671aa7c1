-- All schedules, each with its last ticks of the ledger: when they were due, when they were fired, and their jobs.
SELECT s.queue, s.key, s.cron, s.timezone, s.missed, s.data, s.options, s.created_on, s.updated_on, s.paused,
       t.due, t.fired, t.jobs
FROM (SELECT * FROM trioboss.schedule ORDER BY queue, key LIMIT :limit::bigint) s
CROSS JOIN LATERAL (
    SELECT array_agg(t.due::timestamptz ORDER BY t.due DESC) AS due, array_agg(t.fired_on::timestamptz ORDER BY t.due DESC) AS fired,
           array_agg(t.job_id ORDER BY t.due DESC) AS jobs
    FROM (SELECT * FROM trioboss.tick t WHERE t.queue = s.queue AND t.key = s.key ORDER BY t.due DESC LIMIT :ticks::bigint) t
) t
ORDER BY s.queue, s.key;
