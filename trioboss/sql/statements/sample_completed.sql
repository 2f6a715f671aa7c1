-- Add jobs that completed to the samples of their minute, with histograms of how long they waited and ran. The archive
-- is read by transaction, so each job is counted once. Jobs that leave no row (keep_completed) are not counted.
WITH span AS MATERIALIZED (
    SELECT xid_before AS first, xid AS sealed, counted_before - interval '1 hour' AS earliest
    FROM trioboss.sampling WHERE taken_by = pg_current_xact_id()
), ended AS MATERIALIZED (                       -- few rows: the histograms are made of these
    SELECT queue, minute, wait, run, count(*) AS n
    FROM (SELECT a.queue, date_trunc('minute', a.completed_on) AS minute,
                 width_bucket(date_part('epoch', a.started_on - greatest(a.start_after, a.created_on)), :bounds::float8[]) AS wait,
                 width_bucket(date_part('epoch', a.completed_on - a.started_on), :bounds) AS run
          FROM trioboss.archive a
          WHERE a.xid >= (SELECT first FROM span) AND a.xid < (SELECT sealed FROM span)
            AND a.completed_on >= (SELECT earliest FROM span) AND a.outcome = 'completed') a
    GROUP BY queue, minute, wait, run
), waits AS (
    SELECT queue, minute, array_agg(n::int ORDER BY bucket) AS counts, sum(n)::int AS completed
    FROM (SELECT m.queue, m.minute, b.bucket, coalesce(sum(e.n), 0) AS n
          FROM (SELECT DISTINCT queue, minute FROM ended) m
          CROSS JOIN generate_series(0, cardinality(:bounds)) AS b (bucket)
          LEFT JOIN ended e ON e.queue = m.queue AND e.minute = m.minute AND coalesce(e.wait, 0) = b.bucket
          GROUP BY 1, 2, 3) w
    GROUP BY queue, minute
), runs AS (
    SELECT queue, minute, array_agg(n::int ORDER BY bucket) AS counts
    FROM (SELECT m.queue, m.minute, b.bucket, coalesce(sum(e.n), 0) AS n
          FROM (SELECT DISTINCT queue, minute FROM ended) m
          CROSS JOIN generate_series(0, cardinality(:bounds)) AS b (bucket)
          LEFT JOIN ended e ON e.queue = m.queue AND e.minute = m.minute AND coalesce(e.run, 0) = b.bucket
          GROUP BY 1, 2, 3) r
    GROUP BY queue, minute
)
INSERT INTO trioboss.queue_sample AS s (queue, minute, completed, waits, runs)
SELECT w.queue, w.minute, w.completed, w.counts, r.counts FROM waits w JOIN runs r ON r.queue = w.queue AND r.minute = w.minute
ON CONFLICT (queue, minute) DO UPDATE
SET completed = least(s.completed::bigint + excluded.completed, 1000000000), waits = trioboss.add_counts(s.waits, excluded.waits),
    runs = trioboss.add_counts(s.runs, excluded.runs);
