-- Add jobs that were sent to the samples of their minute, by the time in their ids; ids that are no UUIDv7 are counted
-- by sample_own_ids.sql. A minute is counted once more when it is four minutes old, for jobs of transactions that took
-- longer.
WITH span AS MATERIALIZED (
    SELECT counted_before AS first, counted AS last FROM trioboss.sampling WHERE taken_by = pg_current_xact_id()
), slice AS (                                    -- the parts of minutes that are new, and the minutes to be counted again
    SELECT m AS minute, greatest(m, p.first) AS first, least(m + interval '1 min', p.last) AS last, false AS again
    FROM span p, generate_series(date_trunc('minute', p.first), p.last, interval '1 min') AS m
    UNION ALL
    SELECT m - interval '5 min', m - interval '5 min', m - interval '4 min', true
    FROM span p, generate_series(date_trunc('minute', p.first), p.last, interval '1 min') AS m
    WHERE m > p.first
), ranges AS MATERIALIZED (
    SELECT *, (lpad(to_hex((date_part('epoch', first) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid AS low,
           (lpad(to_hex((date_part('epoch', last) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid AS high
    FROM slice
), arrived AS MATERIALIZED (
    SELECT q.name AS queue, r.minute, r.again, l.n + a.n AS n
    FROM trioboss.queue q CROSS JOIN ranges r
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM trioboss.live_job j WHERE j.queue = q.name AND j.id >= r.low AND j.id < r.high) l
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM trioboss.archive a
        WHERE a.queue = q.name AND a.id >= r.low AND a.id < r.high AND a.completed_on >= r.first - interval '1 hour') a
    WHERE l.n + a.n > 0
)
INSERT INTO trioboss.queue_sample AS s (queue, minute, arrived)
SELECT a.queue, a.minute, sum(CASE WHEN a.again THEN a.n - coalesce(k.arrived, 0) ELSE a.n END)
FROM arrived a
LEFT JOIN LATERAL (
    SELECT o.arrived FROM trioboss.queue_sample o WHERE o.queue = a.queue AND o.minute = a.minute AND a.again) k ON true
WHERE NOT a.again OR a.n > coalesce(k.arrived, 0)
GROUP BY 1, 2
ON CONFLICT (queue, minute) DO UPDATE SET arrived = least(s.arrived::bigint + excluded.arrived, 1000000000);
