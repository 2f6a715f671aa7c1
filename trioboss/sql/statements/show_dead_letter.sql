-- The dead letter job of a failed job. It was made when the job failed, so its id is of that second.
SELECT d.queue, d.id
FROM (SELECT (lpad(to_hex((date_part('epoch', :ended_on::timestamptz) * 1000)::bigint - 1000), 12, '0') || repeat('0', 20))::uuid AS low,
             (lpad(to_hex((date_part('epoch', :ended_on) * 1000)::bigint + 1000), 12, '0') || repeat('0', 20))::uuid AS high) r
CROSS JOIN LATERAL (
    SELECT j.queue, j.id, j.notes FROM trioboss.live_job j WHERE j.queue = :queue::text AND j.id >= r.low AND j.id < r.high
    UNION ALL
    SELECT a.queue, a.id, a.notes FROM trioboss.archive a WHERE a.queue = :queue AND a.id >= r.low AND a.id < r.high
) d
WHERE d.notes #>> '{source,id}' = :id::uuid::text
LIMIT 1;
