-- All workers: who they are, whether their boss is connected, and how many jobs they run. A boss holds a session lock
-- with the number `lock`; behind a pooler it keeps `seen_on` up to date instead.
WITH held AS MATERIALIZED (
\ir fragments/held_locks.sql
)
SELECT w.id, w.boss, w.name, w.queue, w.started_on, coalesce(w.gone_since, w.seen_on) AS seen_on,
\ir fragments/is_connected.sql
       AS present, w.lock IS NULL AS pooled, coalesce(r.number, 0) AS running
FROM trioboss.worker w
LEFT JOIN (SELECT j.worker, count(*) AS number FROM trioboss.live_job j WHERE j.readiness = 'active' GROUP BY j.worker) r
    ON r.worker = w.id
ORDER BY w.queue, w.name, w.id;
