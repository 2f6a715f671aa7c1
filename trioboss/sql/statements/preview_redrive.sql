-- What redrive.sql would do: the jobs for each source, destination (null: none) and kind of error.
SELECT source, destination, error, count(*) FROM (
    SELECT j.notes #>> '{source,queue}' AS source, j.notes #>> '{error,name}' AS error,
           CASE WHEN q.policy <> 'key_strict_fifo' OR j.key IS NOT NULL THEN q.name END AS destination
    FROM trioboss.live_job_common j
    LEFT JOIN trioboss.queue q ON q.name = coalesce(:to::text, j.notes #>> '{source,queue}')
    WHERE j.queue = :queue::text AND j.readiness < 'active'
      AND (:source::text IS NULL OR j.notes #>> '{source,queue}' = :source)
    ORDER BY j.id
    LIMIT :limit::bigint
) picked
GROUP BY source, destination, error ORDER BY source, destination, error;
