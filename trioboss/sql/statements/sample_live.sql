-- Write how many jobs of each queue wait, are ready and active, into the sample of this minute, where that has changed.
-- Reads at most 100000 jobs of a kind, so that its cost does not grow with the queue.
WITH span AS MATERIALIZED (
    SELECT date_trunc('minute', counted + interval '2 s') AS minute FROM trioboss.sampling WHERE taken_by = pg_current_xact_id()
), live AS MATERIALIZED (
    SELECT q.name AS queue, p.minute, d.n AS deferred, w.n AS waiting, r.n AS ready, a.n AS active
    FROM span p CROSS JOIN trioboss.queue q
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
        SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'deferred' LIMIT 100000) j) d
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
        SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'waiting' LIMIT 100000) j) w
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
        SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'ready' LIMIT 100000) j) r
    CROSS JOIN LATERAL (SELECT count(*) AS n FROM (
        SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness = 'active' LIMIT 100000) j) a
)
INSERT INTO trioboss.queue_sample (queue, minute, deferred, waiting, ready, active)
SELECT l.queue, l.minute, l.deferred, l.waiting, l.ready, l.active
FROM live l
LEFT JOIN LATERAL (
    SELECT k.deferred, k.waiting, k.ready, k.active FROM trioboss.queue_sample k
    WHERE k.queue = l.queue AND k.active IS NOT NULL ORDER BY k.minute DESC LIMIT 1) k ON true
WHERE (l.deferred, l.waiting, l.ready, l.active)
      IS DISTINCT FROM (coalesce(k.deferred, 0), coalesce(k.waiting, 0), coalesce(k.ready, 0), coalesce(k.active, 0))
ON CONFLICT (queue, minute) DO UPDATE
SET deferred = excluded.deferred, waiting = excluded.waiting, ready = excluded.ready, active = excluded.active;
