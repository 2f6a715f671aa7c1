-- Add attempts that failed, expired or were lost to the samples of their minute. They are read by transaction, so each
-- attempt is counted once.
WITH span AS MATERIALIZED (
    SELECT xid_before AS first, xid AS sealed, counted_before - interval '1 hour' AS earliest
    FROM trioboss.sampling WHERE taken_by = pg_current_xact_id()
)
INSERT INTO trioboss.queue_sample AS s (queue, minute, failed)
SELECT a.queue, date_trunc('minute', a.ended_on), count(*)
FROM trioboss.attempt a
WHERE a.xid >= (SELECT first FROM span) AND a.xid < (SELECT sealed FROM span) AND a.ended_on >= (SELECT earliest FROM span)
  AND a.outcome IN ('failed', 'expired', 'lost')
GROUP BY 1, 2
ON CONFLICT (queue, minute) DO UPDATE SET failed = least(s.failed::bigint + excluded.failed, 1000000000);
