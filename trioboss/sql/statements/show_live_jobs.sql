-- One page of the live jobs of a queue that pass all filters, the newest first, between two ids. `within` is a second state,
-- that of the jobs an action changes. Reads at most `budget` jobs: the last row, without an id, is the oldest of the jobs
-- that were read, if there may be more.
WITH read AS MATERIALIZED (  -- only what the page needs: data and progress may be large
    (SELECT j.id, j.readiness, j.priority, j.attempt, j.key, j.created_on, j.start_after, j.started_on,
            j.notes -> 'failed_on' AS failed_on, j.notes -> 'error' AS problem
     FROM trioboss.live_job j
     WHERE j.queue = :queue::text AND j.readiness = 'active' AND :state::text = 'active'
       AND j.id < :high::uuid AND j.id >= :low::uuid
     ORDER BY j.id DESC LIMIT :budget::bigint)
    UNION ALL
    (SELECT j.id, j.readiness, j.priority, j.attempt, j.key, j.created_on, j.start_after, j.started_on,
            j.notes -> 'failed_on', j.notes -> 'error'
     FROM trioboss.live_job j
     WHERE j.queue = :queue AND :state IS DISTINCT FROM 'active' AND j.id < :high AND j.id >= :low
       -- Only a failed job that blocks its key is live: other queues need not be searched for failed jobs.
       AND (NOT coalesce('failed' IN (:state, :within::text), false)
            OR EXISTS (SELECT FROM trioboss.queue q WHERE q.name = :queue AND q.policy = 'key_strict_fifo'))
     ORDER BY j.id DESC LIMIT :budget)
), found AS (
    SELECT id, state, readiness, priority, attempt, key, created_on, start_after, started_on, failed_on AS ended_on, error, message
    FROM (SELECT j.id, j.readiness, j.priority, j.attempt, j.key, j.created_on, j.start_after, j.started_on,
                 (j.failed_on #>> '{}')::timestamptz AS failed_on, j.problem ->> 'name' AS error,
                 left(j.problem ->> 'message', 200) AS message,
                 CASE WHEN j.readiness = 'active' THEN 'active' WHEN j.readiness = 'ended' THEN 'failed'
                      WHEN j.attempt > 0 THEN 'retry' ELSE 'created' END AS state
          FROM read j) j
    WHERE (:state IS NULL OR :state IN (j.state, j.readiness::text) OR (:state = 'queued' AND j.readiness < 'active'))
      AND (:within::text IS NULL OR :within IN (j.state, j.readiness::text) OR (:within = 'queued' AND j.readiness < 'active')
           OR (:within = 'unfinished' AND j.readiness <= 'active'))
      AND (:key::text IS NULL OR j.key = :key) AND (:error::text IS NULL OR j.error = :error)
      AND (:attempt::int IS NULL OR j.attempt >= :attempt) AND (:tail::text IS NULL OR right(j.id::text, 12) = :tail)
      AND coalesce(j.failed_on, j.created_on) >= coalesce(:since::timestamptz, '-infinity')
      AND coalesce(j.failed_on, j.created_on) < coalesce(:until::timestamptz, 'infinity')
    ORDER BY id DESC LIMIT :limit::bigint
)
SELECT id, state, readiness::text, priority, attempt, key, created_on, start_after, started_on, ended_on, error, message, NULL::uuid AS last
FROM found
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, min(id::text)::uuid FROM read HAVING count(*) >= :budget
ORDER BY id DESC NULLS LAST;
