-- One page of the workers by name, queue and id, after one of them: whether their boss is connected, and the jobs they
-- have, up to `most` of all leases. Of all workers, of those that take jobs of a queue (`serving`), or one (`worker`).
-- `seen_on` is, for a worker that is gone, when that was noticed; for others the last sign of them: they registered,
-- started a job or renewed a lease.
WITH leases AS MATERIALIZED (
    SELECT j.worker, j.queue, j.id, j.started_on, j.expires_on, j.heartbeat_on, j.attempt FROM trioboss.live_job j
    WHERE j.readiness = 'active' ORDER BY j.queue, j.id LIMIT :most::bigint
), held AS MATERIALIZED (
\ir fragments/held_locks.sql
)
SELECT w.id, w.boss, w.name, w.queue, w.started_on,
       coalesce(w.gone_since, greatest(w.seen_on, l.newest, l.renewed))::timestamptz AS seen_on, w.gone_since,
\ir fragments/is_connected.sql
       AS connected, w.lock IS NULL AS pooled, w.info, l.running, l.oldest, l.next_expiry, l.jobs
FROM (
    SELECT * FROM trioboss.worker w
    WHERE (:after_name::text IS NULL OR (w.name, w.queue, w.id) > (:after_name, :after_queue::text, :after_id::uuid))
      AND (:serving::text IS NULL OR
\ir fragments/is_served.sql queue=:serving pattern=w.queue
      )
      AND (:worker::uuid IS NULL OR w.id = :worker)
    ORDER BY w.name, w.queue, w.id LIMIT :limit::bigint
) w
CROSS JOIN LATERAL (
    SELECT count(*) AS running, min(started_on) AS oldest, max(started_on) AS newest, max(heartbeat_on) AS renewed,
           min(expires_on) AS next_expiry,
           (SELECT json_agg(json_build_array(f.queue, f.id, f.started_on, f.attempt)) FROM (
               SELECT * FROM leases f WHERE f.worker = w.id ORDER BY f.started_on LIMIT 10) f)::jsonb AS jobs
    FROM leases l WHERE l.worker = w.id
) l
ORDER BY w.name, w.queue, w.id;
