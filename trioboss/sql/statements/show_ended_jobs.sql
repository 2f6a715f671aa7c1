-- One page of the ended jobs of a queue that pass all filters, the newest first, between two ids. `outcome` is for jobs that
-- failed or were cancelled, which have an index. `within` is a second state, that of the jobs an action changes. Reads at
-- most `budget` jobs: the last row, without an id, is the oldest of the jobs that were read, if there may be more.
WITH read AS MATERIALIZED (  -- only what the page needs: data and outputs of completed jobs may be large
    (SELECT a.id, a.outcome, a.priority, a.attempt, a.key, a.created_on, a.start_after, a.started_on, a.completed_on,
            CASE WHEN a.outcome <> 'completed' THEN a.output END AS problem
     FROM trioboss.archive a
     WHERE a.queue = :queue::text AND a.outcome = :outcome::trioboss.outcome AND a.outcome <> 'completed'
       AND a.id < :high::uuid AND a.id >= :low::uuid
       AND a.completed_on >= coalesce(:since::timestamptz, '-infinity') AND a.completed_on < coalesce(:until::timestamptz, 'infinity')
     ORDER BY a.id DESC LIMIT :budget::bigint)
    UNION ALL
    (SELECT a.id, a.outcome, a.priority, a.attempt, a.key, a.created_on, a.start_after, a.started_on, a.completed_on,
            CASE WHEN a.outcome <> 'completed' THEN a.output END
     FROM trioboss.archive a
     WHERE a.queue = :queue AND :outcome IS NULL AND a.id < :high AND a.id >= :low
       AND a.completed_on >= coalesce(:since, '-infinity') AND a.completed_on < coalesce(:until, 'infinity')
     ORDER BY a.id DESC LIMIT :budget)
), found AS (
    SELECT id, outcome::text AS state, priority, attempt, key, created_on, start_after, started_on, completed_on,
           problem ->> 'name' AS error, left(problem ->> 'message', 200) AS message
    FROM read a
    WHERE (:state::text IS NULL OR a.outcome::text = :state) AND (:within::text IS NULL OR a.outcome::text = :within)
      AND (:key::text IS NULL OR a.key = :key) AND (:error::text IS NULL OR a.problem ->> 'name' = :error)
      AND (:attempt::int IS NULL OR a.attempt >= :attempt) AND (:tail::text IS NULL OR right(a.id::text, 12) = :tail)
    ORDER BY id DESC LIMIT :limit::bigint
)
SELECT id, state, 'ended', priority, attempt, key, created_on, start_after, started_on, completed_on, error, message, NULL::uuid AS last
FROM found
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, min(id::text)::uuid FROM read HAVING count(*) >= :budget
ORDER BY id DESC NULLS LAST;
