-- The jobs that have been running for longest, with the name of their worker.
SELECT j.queue, j.id, j.attempt, extract(epoch FROM statement_timestamp() - j.started_on)::float8 AS age,
       extract(epoch FROM j.expires_on - statement_timestamp())::float8 AS expires_in, j.notes -> 'progress' AS progress,
       w.name AS worker
FROM trioboss.live_job j LEFT JOIN trioboss.worker w ON w.id = j.worker
WHERE j.readiness = 'active'
ORDER BY j.started_on LIMIT :limit::bigint;
