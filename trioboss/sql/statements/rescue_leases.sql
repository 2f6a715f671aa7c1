-- Examine all leases, in one statement. Rows, by `kind`:
--   ended    an attempt to be ended: `outcome` is expired, lost or, if its worker has stopped, released
--   dead     a worker whose row can be deleted
--   active   how many jobs are active, and in how many seconds the first lease runs out
--
-- A worker is *gone* if its session does not hold its lock or, behind a pooler, if it was not seen for `grace` seconds.
-- It is *dead* if it has stopped, or was found gone `grace` seconds ago (`gone_since`) and in every examination since.
-- A lease is *silent* if its job has a heartbeat, and that long none came.
-- A lease is *lost* if its worker is dead and has not stopped, or has no row, or if it is silent.
-- So a boss that merely reconnects takes its lock again within the grace, and loses nothing.
-- The locks are read from pg_locks, together with the session that holds each. To try them instead would let another
-- session with the same lock hide a death, and the locks of many dead workers would fill the server's table of locks.
-- Unless `certain`, no worker that is gone becomes dead, and no lease silent: the caller is connected for less than the
-- grace, and all bosses may have been cut off from the server before. `gone_since` is written nevertheless.
-- `margin` seconds are left to a worker to end an expired attempt itself.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), held AS MATERIALIZED (
\ir fragments/held_locks.sql
), seen AS MATERIALIZED (
    SELECT w.id, w.gone_since, w.stopped,
           CASE WHEN w.lock IS NULL THEN w.seen_on < c.now - :grace::float8 * interval '1 s'
                ELSE NOT EXISTS (SELECT FROM held h WHERE h.lock = w.lock AND h.pid = coalesce(w.pid, h.pid)) END AS gone
    FROM trioboss.worker w, clock c
), noted AS (
    UPDATE trioboss.worker w
    SET gone_since = CASE WHEN s.gone THEN c.now END
    FROM seen s, clock c
    WHERE w.id = s.id AND s.gone <> (s.gone_since IS NOT NULL)
), dead AS MATERIALIZED (
    SELECT s.id, s.stopped FROM seen s, clock c
    WHERE s.stopped OR (:certain::boolean AND s.gone AND s.gone_since <= c.now - :grace * interval '1 s')
), active AS MATERIALIZED (
    SELECT j.queue, j.id, j.attempt, j.started_on, j.expires_on,
           CASE WHEN :certain THEN coalesce(j.heartbeat_on, j.started_on) + j.heartbeat * interval '1 s' END AS silent_on,
           j.worker IS NOT NULL AND (j.worker IN (SELECT id FROM dead) OR j.worker NOT IN (SELECT id FROM seen)) AS orphaned,
           j.worker IN (SELECT id FROM dead WHERE stopped) AS released
    FROM trioboss.live_job j WHERE j.readiness = 'active'
)
(SELECT 'ended' AS kind, a.queue, a.id, a.attempt, a.started_on,
        CASE WHEN a.released THEN 'released'
             WHEN a.expires_on < c.now - :margin::float8 * interval '1 s' THEN 'expired' ELSE 'lost' END AS outcome,
        NULL::float8 AS number
 FROM active a, clock c
 WHERE a.orphaned OR least(a.expires_on, a.silent_on) < c.now - :margin * interval '1 s'
 LIMIT 1000)
UNION ALL
SELECT 'dead', NULL, id, NULL, NULL, NULL, NULL FROM dead
UNION ALL
SELECT 'active', NULL, NULL, count(*)::int, NULL, NULL,
       extract(epoch FROM min(least(a.expires_on, a.silent_on)) - min(c.now))::float8
FROM clock c LEFT JOIN active a ON true WHERE a.id IS NOT NULL;
