-- Of the newest thousand jobs of a queue that completed, those that ran longest.
SELECT id, key, attempt, completed_on, extract(epoch FROM started_on - greatest(start_after, created_on))::float8 AS waited,
       extract(epoch FROM completed_on - started_on)::float8 AS ran
FROM (
    SELECT * FROM trioboss.archive a WHERE a.queue = :queue::text AND a.outcome = 'completed' AND a.started_on IS NOT NULL
    ORDER BY a.id DESC LIMIT 1000
) a
ORDER BY completed_on - started_on DESC LIMIT :limit::bigint;
