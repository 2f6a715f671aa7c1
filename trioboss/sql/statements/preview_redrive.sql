-- What redrive.sql would do: the jobs for each destination; null for those that have none.
SELECT destination, count(*) FROM (
    SELECT CASE WHEN q.policy <> 'key_strict_fifo' OR j.key IS NOT NULL THEN q.name END AS destination
    FROM trioboss.live_job_common j
    LEFT JOIN trioboss.queue q ON q.name = coalesce(:to::text, j.notes #>> '{source,queue}')
    WHERE j.queue = :queue::text AND j.readiness < 'active'
      AND (:source::text IS NULL OR j.notes #>> '{source,queue}' = :source)
    ORDER BY j.seq
    LIMIT :limit::bigint
) picked
GROUP BY destination ORDER BY destination;
