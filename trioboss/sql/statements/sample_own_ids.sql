-- Add jobs whose ids say nothing of when they were sent, those of callers (id=…) that are no UUIDv7, to the samples of
-- the minute in which they were sent: when they end, because no index has live jobs by that time. The archive is read
-- by transaction, so each end is counted once. All other ids of the last day are in a range (sample_arrived.sql).
WITH span AS MATERIALIZED (
    SELECT xid_before AS first, xid AS sealed, counted_before - interval '1 hour' AS earliest, counted - interval '1 day' AS kept,
           (lpad(to_hex((date_part('epoch', counted - interval '1 day') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid AS low,
           (lpad(to_hex((date_part('epoch', counted + interval '1 hour') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid AS high
    FROM trioboss.sampling WHERE taken_by = pg_current_xact_id()
)
INSERT INTO trioboss.queue_sample AS s (queue, minute, arrived)
SELECT a.queue, date_trunc('minute', a.created_on), count(*)
FROM trioboss.archive a
WHERE a.xid >= (SELECT first FROM span) AND a.xid < (SELECT sealed FROM span) AND a.completed_on >= (SELECT earliest FROM span)
  AND a.created_on >= (SELECT kept FROM span) AND (a.id < (SELECT low FROM span) OR a.id >= (SELECT high FROM span))
GROUP BY 1, 2
ON CONFLICT (queue, minute) DO UPDATE SET arrived = least(s.arrived::bigint + excluded.arrived, 1000000000);
