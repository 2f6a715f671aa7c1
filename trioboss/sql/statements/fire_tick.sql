-- Write a tick into the table tick, once it is due by the database's clock. One row: `ours` if this call wrote it, the
-- seconds to wait if it came too early, and the data and options of its job if it is ours. No row: the schedule is gone
-- or paused, or was changed after the tick.
WITH asked AS MATERIALIZED (
    SELECT s.queue, s.key, s.data, s.options, coalesce(:now::timestamptz, statement_timestamp()) AS now
    FROM trioboss.schedule s
    WHERE s.queue = :queue::text AND s.key = :key::text AND s.updated_on < :due::timestamptz AND NOT s.paused
    FOR KEY SHARE                                -- a schedule that is being deleted is waited for, and gone then
), written AS (
    INSERT INTO trioboss.tick (queue, key, due, fired_on, job_id)
    SELECT queue, key, :due, now, :id::uuid FROM asked WHERE :due <= now
    ON CONFLICT DO NOTHING
    RETURNING due
)
SELECT w.due IS NOT NULL AS ours, greatest(extract(epoch FROM :due - a.now)::float8, 0) AS early,
       CASE WHEN w.due IS NOT NULL THEN a.data END AS data, CASE WHEN w.due IS NOT NULL THEN a.options END AS options
FROM asked a LEFT JOIN written w ON true;
