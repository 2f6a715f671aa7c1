-- Of the newest thousand jobs of a queue that completed: how long they ran, the slowest first. Jobs of one key are one
-- row, with their number, the median, and the longest run with its job; a job without a key is a row of its own.
SELECT key, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY ran), max(ran) AS longest,
       (array_agg(id ORDER BY ran DESC))[1] AS id, (array_agg(completed_on ORDER BY ran DESC))[1] AS completed_on
FROM (
    SELECT a.id, a.key, a.completed_on, extract(epoch FROM a.completed_on - a.started_on)::float8 AS ran
    FROM trioboss.archive a
    WHERE a.queue = :queue::text AND a.outcome = 'completed' AND a.started_on IS NOT NULL
    ORDER BY a.id DESC LIMIT 1000
) a
GROUP BY key, CASE WHEN key IS NULL THEN id END
ORDER BY longest DESC LIMIT :limit::bigint;
