-- One page of the live jobs of a queue that pass all filters, the newest first, between two ids. `within` is a second
-- state, that of the jobs an action changes. With `committed` only jobs that were there when they were counted and have
-- not changed since; an active one has not if its attempt began before `counted_on`: its lease is renewed. Reads at
-- most `budget` jobs. Notes have the stacks of errors and may be large: only a filter by the class of an error reads
-- them, and one by time those of failed jobs, which block their keys; at most `bytes` of them, as they are stored. The
-- last row, without an id, has the oldest of the jobs that were read and how many they were, if there may be more.
-- min(id::text)::uuid, because min(uuid) is new in Postgres 18.
WITH read AS MATERIALIZED (
    (SELECT j.id, j.readiness, j.priority, j.attempt, j.key, j.created_on, j.start_after, j.started_on, j.xmin,
            pg_column_size(j.notes) AS bytes
     FROM trioboss.live_job j
     WHERE j.queue = :queue::text AND j.readiness = 'active' AND :state::text = 'active'
       AND j.id < :high::uuid AND j.id >= :low::uuid
     ORDER BY j.id DESC LIMIT :budget::bigint)
    UNION ALL
    (SELECT j.id, j.readiness, j.priority, j.attempt, j.key, j.created_on, j.start_after, j.started_on, j.xmin,
            pg_column_size(j.notes)
     FROM trioboss.live_job j
     WHERE j.queue = :queue AND :state IS DISTINCT FROM 'active' AND j.id < :high AND j.id >= :low
       -- Only a failed job that blocks its key is live: other queues need not be searched for failed jobs.
       AND (NOT coalesce('failed' IN (:state, :within::text), false)
            OR EXISTS (SELECT FROM trioboss.queue q WHERE q.name = :queue AND q.policy = 'key_strict_fifo'))
     ORDER BY j.id DESC LIMIT :budget)
), passed AS MATERIALIZED (                          -- the filters that need no notes
    SELECT j.*, coalesce(sum(CASE WHEN j.by_notes THEN j.bytes END) OVER (ORDER BY j.id DESC ROWS BETWEEN UNBOUNDED PRECEDING
                                                                         AND 1 PRECEDING), 0) >= :bytes::bigint AS is_over
    FROM (SELECT j.*, :error::text IS NOT NULL
                      OR (j.readiness = 'ended' AND (:since::timestamptz IS NOT NULL OR :until::timestamptz IS NOT NULL)) AS by_notes,
\ir fragments/live_state.sql
                 AS state
          FROM read j) j
    WHERE (:state IS NULL OR :state IN (j.state, j.readiness::text) OR (:state = 'queued' AND j.readiness < 'active'))
      AND (:within::text IS NULL OR :within IN (j.state, j.readiness::text) OR (:within = 'queued' AND j.readiness < 'active')
           OR (:within = 'unfinished' AND j.readiness <= 'active'))
      AND (:key::text IS NULL OR j.key = :key) AND (:error IS NULL OR j.bytes IS NOT NULL)
      AND (:attempt::int IS NULL OR j.attempt >= :attempt) AND (:digits::text IS NULL OR strpos(replace(j.id::text, '-', ''), :digits) > 0)
      AND (
\ir fragments/was_committed.sql
           OR (j.readiness = 'active' AND j.started_on < :counted_on::timestamptz))
      AND (j.readiness = 'ended' OR (j.created_on >= coalesce(:since, '-infinity') AND j.created_on < coalesce(:until, 'infinity')))
), found AS (                                        -- in order, so that no notes are read beyond those that are needed
    SELECT * FROM (SELECT * FROM passed j WHERE NOT j.is_over ORDER BY j.id DESC) j
    WHERE NOT j.by_notes OR (
        SELECT (:error IS NULL OR left(n.notes #>> '{error,name}', 200) = left(:error, 200))
           AND (j.readiness <> 'ended'
                OR coalesce((n.notes ->> 'failed_on')::timestamptz, n.created_on) >= coalesce(:since, '-infinity')
               AND coalesce((n.notes ->> 'failed_on')::timestamptz, n.created_on) < coalesce(:until, 'infinity'))
        FROM trioboss.live_job n WHERE n.queue = :queue AND n.id = j.id)
    ORDER BY j.id DESC LIMIT :limit::bigint
), reached AS (
    SELECT CASE WHEN EXISTS (SELECT FROM passed j WHERE j.is_over) THEN (SELECT min(j.id::text)::uuid FROM passed j WHERE NOT j.is_over)
                ELSE (SELECT min(j.id::text)::uuid FROM read j HAVING count(*) >= :budget) END AS last
)
SELECT j.id, j.state, j.readiness::text, j.priority, j.attempt::int, j.key::text, j.created_on::timestamptz, j.start_after::timestamptz,
       j.started_on::timestamptz, NULL::timestamptz AS ended_on, NULL::uuid AS last, NULL::bigint AS searched
FROM found j
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, r.last, (SELECT count(*) FROM read j WHERE j.id >= r.last)
FROM reached r WHERE r.last IS NOT NULL
ORDER BY id DESC NULLS LAST;
