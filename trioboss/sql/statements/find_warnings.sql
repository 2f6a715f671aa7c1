-- Warnings for operators, besides find_long_queues.sql: queues that do not move, snapshots that hold back vacuum, and
-- a queue of notifications that fills up.
-- The next thousand jobs that could run tell whether a queue is stuck; to read all jobs would take as long as there
-- are. In a keyed queue those are the first jobs of the backlogs without an owner, which all have a check.
SELECT q.name, 'oldest_age' AS warning, NULL::int AS pid, NULL::timestamptz AS since, extract(epoch FROM c.now - r.since)::float8 AS number
FROM (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now) c, trioboss.queue q
CROSS JOIN LATERAL (
    SELECT min(n.start_after) AS since
    FROM ((SELECT j.start_after FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'ready'
           ORDER BY j.priority DESC, j.seq LIMIT 1000)
          UNION ALL
          SELECT h.start_after
          FROM (SELECT b.backlog FROM trioboss.backlog_check b WHERE b.queue = q.name ORDER BY -b.priority::bigint, b.seq LIMIT 1000) b,
               LATERAL (SELECT start_after
\ir fragments/first_waiting.sql jobs=live_job queue=q.name backlog=b.backlog
               ) h) n
) r
WHERE NOT q.paused AND r.since < c.now - interval '1 hour'
  AND EXISTS (SELECT FROM trioboss.worker w WHERE
\ir fragments/is_served.sql queue=q.name pattern=w.queue
  )
UNION ALL
SELECT NULL, 'old_snapshot', s.pid, s.xact_start, extract(epoch FROM clock_timestamp() - s.xact_start)::float8
FROM pg_stat_activity s
WHERE s.datname = current_database() AND s.backend_xmin IS NOT NULL
  AND s.state IS DISTINCT FROM 'idle'  -- an idle session that receives a notification shows its last statement's age
  AND s.backend_type = 'client backend' AND s.xact_start < clock_timestamp() - interval '5 minutes'
UNION ALL
SELECT NULL, 'notify_queue', NULL, NULL, pg_notification_queue_usage() WHERE pg_notification_queue_usage() > 0.1
UNION ALL
-- Tables of days that were made too late: see add_days.
SELECT NULL, 'late_days', NULL, NULL, pg_relation_size('trioboss.archive_default')::float8
WHERE pg_relation_size('trioboss.archive_default') > 16777216;
