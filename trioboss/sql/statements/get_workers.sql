-- All workers: who they are, whether their boss is connected, and how many jobs they run. A boss holds a session lock with
-- the number `lock`; behind a pooler it keeps `seen_on` up to date instead.
SELECT w.id, w.boss, w.name, w.queue, w.started_on, coalesce(w.gone_since, w.seen_on) AS seen_on,
       CASE WHEN w.lock IS NULL THEN w.seen_on > clock_timestamp() - interval '15 s'
            ELSE EXISTS (SELECT FROM pg_catalog.pg_locks l
                         WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
                           AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
                           AND l.classid::bigint << 32 | l.objid::bigint = w.lock) END AS present,
       w.lock IS NULL AS pooled, coalesce(r.number, 0) AS running
FROM trioboss.worker w
LEFT JOIN (SELECT j.worker, count(*) AS number FROM trioboss.live_job j WHERE j.readiness = 'active' GROUP BY j.worker) r
    ON r.worker = w.id
ORDER BY w.queue, w.name, w.id;
