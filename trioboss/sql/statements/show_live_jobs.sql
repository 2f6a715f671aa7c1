-- One page of the live jobs of a queue that pass all filters, the newest first, between two ids. Reads at most `budget` jobs:
-- the last row, without an id, is the oldest of the jobs that were read, if there may be more.
WITH read AS MATERIALIZED (
    (SELECT * FROM trioboss.live_job j
     WHERE j.queue = :queue::text AND j.readiness = 'active' AND :state::text = 'active'
       AND j.id < :high::uuid AND j.id >= :low::uuid
     ORDER BY j.id DESC LIMIT :budget::bigint)
    UNION ALL
    (SELECT * FROM trioboss.live_job j
     WHERE j.queue = :queue AND :state IS DISTINCT FROM 'active' AND j.id < :high AND j.id >= :low
     ORDER BY j.id DESC LIMIT :budget)
), found AS (
    SELECT id, state, readiness, priority, attempt, key, created_on, start_after, started_on, failed_on AS ended_on, error, message
    FROM (SELECT j.*, j.readiness::text AS waits_for, (j.notes ->> 'failed_on')::timestamptz AS failed_on,
                 j.notes #>> '{error,name}' AS error, left(j.notes #>> '{error,message}', 200) AS message,
                 CASE WHEN j.readiness = 'active' THEN 'active' WHEN j.readiness = 'ended' THEN 'failed'
                      WHEN j.attempt > 0 THEN 'retry' ELSE 'created' END AS state
          FROM read j) j
    WHERE (:state IS NULL OR :state IN (j.state, j.waits_for) OR (:state = 'queued' AND j.readiness < 'active'))
      AND (:key::text IS NULL OR j.key = :key) AND (:error::text IS NULL OR j.error = :error)
      AND (:attempt::int IS NULL OR j.attempt >= :attempt)
      AND coalesce(j.failed_on, j.created_on) >= coalesce(:since::timestamptz, '-infinity')
      AND coalesce(j.failed_on, j.created_on) < coalesce(:until::timestamptz, 'infinity')
    ORDER BY id DESC LIMIT :limit::bigint
)
SELECT id, state, readiness::text, priority, attempt, key, created_on, start_after, started_on, ended_on, error, message, NULL::uuid AS last
FROM found
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, min(id::text)::uuid FROM read HAVING count(*) >= :budget
ORDER BY id DESC NULLS LAST;
