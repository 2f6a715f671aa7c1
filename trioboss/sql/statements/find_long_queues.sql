-- Queues with more queued jobs than their warning_queue_size. Reads no more of a queue than that. At least one row:
-- `limited` says whether any queue has a warning_queue_size.
SELECT EXISTS (SELECT FROM trioboss.queue WHERE warning_queue_size IS NOT NULL) AS limited, long.*
FROM (VALUES (true)) always LEFT JOIN (
    SELECT q.name, 'queue_size' AS warning, NULL::int AS pid, NULL::timestamptz AS since, q.warning_queue_size::float8 AS number
    FROM trioboss.queue q
    WHERE q.warning_queue_size IS NOT NULL AND q.warning_queue_size < (
        SELECT count(*) FROM (
            SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness < 'active'
            LIMIT q.warning_queue_size::bigint + 1
        ) queued)
) long ON true;
