-- The effect of redrive.sql, before it is run: the jobs for each source, destination (null: none) and kind of error,
-- and whether the jobs that they are copies of are still live.
SELECT source, destination, error, count(*), live FROM (
    SELECT j.notes #>> '{source,queue}' AS source, j.notes #>> '{error,name}' AS error, s.live,
           CASE WHEN (q.policy <> 'key_strict_fifo' OR j.key IS NOT NULL) AND NOT s.live THEN q.name END AS destination
    FROM trioboss.live_job_common j
    LEFT JOIN trioboss.queue q ON q.name = coalesce(:to::text, j.notes #>> '{source,queue}')
    CROSS JOIN LATERAL (
\ir fragments/live_source.sql
    ) s
    WHERE j.queue = :queue::text AND j.readiness < 'active'
      AND (:source::text IS NULL OR j.notes #>> '{source,queue}' = :source)
    ORDER BY j.id
    LIMIT :limit::bigint
) picked
GROUP BY source, destination, error, live ORDER BY source, destination, error, live;
