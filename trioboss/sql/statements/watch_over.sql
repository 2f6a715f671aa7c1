-- Watch over all leases, in one statement. Rows, by `kind`:
--   ended    an attempt to be ended: `outcome` lost (its worker is gone, or its heartbeats stopped) or expired
--   dead     a worker that is gone for good
--   active   how many jobs are active, and in how many seconds the first lease runs out
--   warning  with `full`: something an operator should know
--
-- A worker is gone if nobody holds its lock, or, behind a pooler, if it was not seen for `grace` seconds. The row says
-- since when: a boss that merely reconnects takes its lock again within the grace and loses nothing.
-- `margin` seconds are left to a worker to end an expired attempt itself.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), seen AS MATERIALIZED (
    SELECT w.id, w.gone_since,
           CASE WHEN w.lock IS NULL THEN w.seen_on < c.now - :grace::float8 * interval '1 s'
                ELSE pg_try_advisory_xact_lock(w.lock) END AS gone
    FROM trioboss.worker w, clock c
), noted AS (
    UPDATE trioboss.worker w
    SET gone_since = CASE WHEN s.gone THEN c.now END
    FROM seen s, clock c
    WHERE w.id = s.id AND s.gone <> (s.gone_since IS NOT NULL)
), dead AS MATERIALIZED (
    SELECT s.id FROM seen s, clock c WHERE s.gone AND s.gone_since <= c.now - :grace * interval '1 s'
), active AS MATERIALIZED (
    SELECT j.name, j.id, j.attempt, j.started_on, j.started_on + j.expire_in AS expires,
           j.heartbeat_on + j.heartbeat AS silent,
           j.worker IS NOT NULL AND (j.worker IN (SELECT id FROM dead) OR j.worker NOT IN (SELECT id FROM seen)) AS orphaned
    FROM trioboss.job j WHERE j.state = 'active'
)
(SELECT 'ended' AS kind, a.name, a.id, a.attempt, a.started_on,
        CASE WHEN a.expires < c.now - :margin::float8 * interval '1 s' THEN 'expired' ELSE 'lost' END AS outcome,
        NULL::float8 AS number
 FROM active a, clock c
 WHERE a.orphaned OR least(a.expires, a.silent) < c.now - :margin * interval '1 s'
 LIMIT 1000)
UNION ALL
SELECT 'dead', NULL, id, NULL, NULL, NULL, NULL FROM dead
UNION ALL
SELECT 'active', NULL, NULL, count(*)::int, NULL, NULL, extract(epoch FROM min(least(a.expires, a.silent)) - min(c.now))::float8
FROM clock c LEFT JOIN active a ON true WHERE a.id IS NOT NULL
UNION ALL
SELECT 'warning', q.name, NULL, NULL, NULL, 'queue_size', q.warning_queue_size
FROM trioboss.queue q
WHERE :full::boolean AND q.warning_queue_size IS NOT NULL AND q.warning_queue_size < (
    SELECT count(*) FROM (
        SELECT FROM trioboss.job j WHERE j.name = q.name AND j.state < 'active' LIMIT q.warning_queue_size + 1
    ) queued)
UNION ALL
-- The next thousand jobs tell whether a queue is stuck; to look at all of them would take as long as the backlog.
SELECT 'warning', q.name, NULL, NULL, NULL, 'oldest_age', extract(epoch FROM c.now - r.since)::float8
FROM clock c, trioboss.queue q
CROSS JOIN LATERAL (
    SELECT min(n.start_after) AS since
    FROM (SELECT j.start_after FROM trioboss.job j WHERE j.name = q.name AND j.gate = 0 AND j.state < 'active'
          ORDER BY j.priority DESC, j.seq LIMIT 1000) n
) r
WHERE :full AND NOT q.paused AND r.since < c.now - interval '1 hour'
  AND EXISTS (SELECT FROM trioboss.worker w WHERE q.name LIKE replace(replace(w.queue, '_', '\_'), '*', '%'))
UNION ALL
SELECT 'warning', NULL, NULL, s.pid, s.xact_start, 'old_snapshot', extract(epoch FROM clock_timestamp() - s.xact_start)::float8
FROM pg_stat_activity s
WHERE :full AND s.datname = current_database() AND s.backend_xmin IS NOT NULL
  AND s.state IS DISTINCT FROM 'idle'  -- who hears a word while idle looks for a moment as old as its last statement
  AND s.backend_type = 'client backend' AND s.xact_start < clock_timestamp() - interval '5 minutes'
UNION ALL
SELECT 'warning', NULL, NULL, NULL, NULL, 'notify_queue', pg_notification_queue_usage()
WHERE :full AND pg_notification_queue_usage() > 0.1;
