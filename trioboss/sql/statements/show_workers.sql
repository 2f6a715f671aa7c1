-- One page of the workers by name, queue and id, after one of them: whether their boss is connected, and the jobs they have, up to
-- `most` of all leases. `seen_on` is known of workers without a session lock, and of those that are gone: the others are
-- connected, or their session has just ended.
WITH leases AS MATERIALIZED (
    SELECT j.worker, j.queue, j.id, j.started_on, j.expires_on, j.heartbeat_on, j.attempt FROM trioboss.live_job j
    WHERE j.readiness = 'active' ORDER BY j.queue, j.id LIMIT :most::bigint
), held AS MATERIALIZED (
    SELECT (l.classid::bigint << 32) | l.objid::bigint AS lock FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
SELECT w.id, w.boss, w.name, w.queue, w.started_on,
       coalesce(w.gone_since, CASE WHEN w.lock IS NULL THEN w.seen_on END)::timestamptz AS seen_on, w.gone_since,
       CASE WHEN w.lock IS NOT NULL THEN w.lock IN (SELECT lock FROM held) END AS connected, w.info,
       l.running, l.oldest, l.next_expiry, l.jobs
FROM (
    SELECT * FROM trioboss.worker w
    WHERE :after_name::text IS NULL OR (w.name, w.queue, w.id) > (:after_name, :after_queue::text, :after_id::uuid)
    ORDER BY w.name, w.queue, w.id LIMIT :limit::bigint
) w
CROSS JOIN LATERAL (
    SELECT count(*) AS running, min(started_on) AS oldest, min(expires_on) AS next_expiry,
           (SELECT json_agg(json_build_array(f.queue, f.id, f.started_on, f.attempt)) FROM (
               SELECT * FROM leases f WHERE f.worker = w.id ORDER BY f.started_on LIMIT 10) f)::jsonb AS jobs
    FROM leases l WHERE l.worker = w.id
) l
ORDER BY w.name, w.queue, w.id;
