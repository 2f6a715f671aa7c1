-- The obstacles between a live job and its start: its own readiness, its queue, the owner of its key or the first in
-- its backlog, and who could run it. Its workers are those whose queue or pattern matches: how many there are, how many
-- of them are connected, how many jobs these can run at once and have, and when one that is not connected gave its last
-- sign, as in show_workers.sql. The same two of the worker that has it.
WITH held AS MATERIALIZED (
\ir fragments/held_locks.sql
), serving AS MATERIALIZED (
    SELECT w.id, w.queue, coalesce(w.gone_since, greatest(w.seen_on, l.seen_on))::timestamptz AS seen_on, l.running,
           CASE jsonb_typeof(w.info -> 'slots') WHEN 'number' THEN (w.info -> 'slots')::bigint END AS slots,
\ir fragments/is_connected.sql
           AS connected
    FROM trioboss.worker w
    LEFT JOIN (
        SELECT a.worker, count(*) AS running, max(greatest(a.started_on, a.heartbeat_on)) AS seen_on
        FROM (SELECT a.worker, a.started_on, a.heartbeat_on FROM trioboss.live_job a WHERE a.readiness = 'active' LIMIT 10001) a
        GROUP BY a.worker
    ) l ON l.worker = w.id
)
SELECT j.readiness::text, j.start_after::timestamptz, j.started_on::timestamptz, j.worker, j.key::text, j.attempt::int,
       left(j.notes #>> '{error,name}', 200) AS error, q.policy::text, q.paused, s.workers, s.connected, s.slots, s.running, s.seen_on,
       m.connected AS is_connected, m.seen_on AS worker_seen_on,
       (SELECT count(*) FROM (                   -- two ranges of the index of ready jobs, and not the whole queue
            (SELECT FROM trioboss.live_job_common r
             WHERE r.queue = j.queue AND r.readiness = 'ready' AND j.readiness = 'ready' AND r.priority > j.priority LIMIT 10001)
            UNION ALL
            (SELECT FROM trioboss.live_job_common r
             WHERE r.queue = j.queue AND r.readiness = 'ready' AND j.readiness = 'ready' AND r.priority = j.priority AND r.seq < j.seq
             LIMIT 10001)) r) AS ahead,
       coalesce(o.id, f.id) AS behind, coalesce(o.state, f.state) AS behind_state, o.start_after::timestamptz AS behind_due,
       o.error AS behind_error, coalesce(:now::timestamptz, statement_timestamp()) AS now
FROM trioboss.live_job_common j
JOIN trioboss.queue q ON q.name = j.queue
CROSS JOIN LATERAL (
    SELECT count(*) AS workers, count(*) FILTER (WHERE s.connected) AS connected, max(s.seen_on) FILTER (WHERE NOT s.connected) AS seen_on,
           sum(s.slots) FILTER (WHERE s.connected)::bigint AS slots, sum(s.running) FILTER (WHERE s.connected)::bigint AS running
    FROM serving s WHERE
\ir fragments/is_served.sql queue=j.queue pattern=s.queue
) s
LEFT JOIN serving m ON m.id = j.worker
LEFT JOIN LATERAL (
    SELECT o.id, o.start_after, CASE WHEN o.attempt > 0 THEN left(o.notes #>> '{error,name}', 200) END AS error,
           CASE WHEN o.readiness = 'ended' THEN 'failed' ELSE o.readiness::text END AS state
    FROM trioboss.live_job_common o WHERE o.queue = j.queue AND o.owner = j.backlog AND o.id <> j.id
) o ON true
LEFT JOIN LATERAL (
    SELECT f.id, f.readiness::text AS state FROM trioboss.live_job_common f
    WHERE f.queue = j.queue AND f.backlog = j.backlog AND f.readiness = 'waiting' AND (f.rank, f.seq) < (j.rank, j.seq)
    ORDER BY f.rank, f.seq LIMIT 1
) f ON true
WHERE j.queue = :queue::text AND j.id = :id::uuid;
