-- The newest thousand failed jobs of a queue, by the class of their error: how many, when the last one failed, and
-- which.
SELECT coalesce(error, '') AS error, count(*), max(completed_on), (array_agg(id ORDER BY completed_on DESC))[1],
       left((array_agg(message ORDER BY completed_on DESC))[1], 300)
FROM (
    (SELECT a.id, a.completed_on, a.output ->> 'name' AS error, a.output ->> 'message' AS message
     FROM trioboss.archive a
     WHERE a.queue = :queue::text AND a.outcome = 'failed'
     ORDER BY a.id DESC LIMIT 1000)
    UNION ALL
    (SELECT j.id, (j.notes ->> 'failed_on')::timestamptz, j.notes #>> '{error,name}', j.notes #>> '{error,message}'
     FROM trioboss.live_job j WHERE j.queue = :queue AND
\ir fragments/blocks_key.sql
     LIMIT 1000)
) f
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20;
