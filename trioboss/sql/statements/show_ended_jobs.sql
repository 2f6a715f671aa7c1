-- One page of the ended jobs of a queue that pass all filters, the newest first, between two ids. `outcome` is for jobs
-- that failed or were cancelled, which have an index, and so have the classes of their errors. `within` is a second
-- state, that of the jobs an action changes. With `committed` only jobs that had ended when they were counted; the
-- numbers of transactions begin again in a restored database, whose rows may have some that are still to come. Reads at
-- most `budget` jobs, and neither data nor outputs, which may be large. The last row, without an id, has the oldest of
-- the jobs that were read and how many they were, if there may be more. outcome <> 'completed' as in
-- find_ended_jobs.sql; min(id::text)::uuid, because min(uuid) is new in Postgres 18. Only whole days are left out
-- unread: a filter by time among the conditions of `read` would read jobs beyond the budget.
WITH days AS MATERIALIZED (
    SELECT date_trunc('day', coalesce(:since::timestamptz, '-infinity'), 'UTC') AS first,
           date_trunc('day', coalesce(:until::timestamptz, 'infinity') - interval '1 us', 'UTC') + interval '1 day' AS next
), read AS MATERIALIZED (
    (SELECT a.id, a.outcome, a.priority, a.attempt, a.key, a.created_on, a.start_after, a.started_on, a.completed_on, a.xid
     FROM trioboss.archive a
     WHERE a.queue = :queue::text AND a.outcome = :outcome::trioboss.outcome AND a.outcome <> 'completed' AND :error::text IS NULL
       AND a.id < :high::uuid AND a.id >= :low::uuid
       AND a.completed_on >= (SELECT first FROM days) AND a.completed_on < (SELECT next FROM days)
     ORDER BY a.id DESC LIMIT :budget::bigint)
    UNION ALL
    (SELECT a.id, a.outcome, a.priority, a.attempt, a.key, a.created_on, a.start_after, a.started_on, a.completed_on, a.xid
     FROM trioboss.archive a
     WHERE a.queue = :queue AND a.outcome <> 'completed' AND left(a.output ->> 'name', 200) COLLATE "C" = left(:error, 200)
       AND a.id < :high AND a.id >= :low
       AND a.completed_on >= (SELECT first FROM days) AND a.completed_on < (SELECT next FROM days)
     ORDER BY a.id DESC LIMIT :budget)
    UNION ALL
    (SELECT a.id, a.outcome, a.priority, a.attempt, a.key, a.created_on, a.start_after, a.started_on, a.completed_on, a.xid
     FROM trioboss.archive a
     WHERE a.queue = :queue AND :outcome IS NULL AND :error IS NULL AND a.id < :high AND a.id >= :low
       AND a.completed_on >= (SELECT first FROM days) AND a.completed_on < (SELECT next FROM days)
     ORDER BY a.id DESC LIMIT :budget)
), found AS (
    SELECT * FROM read a
    WHERE (:state::text IS NULL OR a.outcome::text = :state) AND (:within::text IS NULL OR a.outcome::text = :within)
      AND (:key::text IS NULL OR a.key = :key)
      AND (:committed::pg_snapshot IS NULL OR pg_visible_in_snapshot(a.xid, :committed)
           OR a.xid >= (SELECT pg_snapshot_xmax(pg_current_snapshot())))
      AND a.completed_on >= coalesce(:since, '-infinity') AND a.completed_on < coalesce(:until, 'infinity')
      AND (:attempt::int IS NULL OR a.attempt >= :attempt) AND (:digits::text IS NULL OR strpos(replace(a.id::text, '-', ''), :digits) > 0)
    ORDER BY id DESC LIMIT :limit::bigint
)
SELECT a.id, a.outcome::text AS state, 'ended' AS readiness, a.priority, a.attempt, a.key, a.created_on::timestamptz,
       a.start_after::timestamptz, a.started_on::timestamptz, a.completed_on, NULL::uuid AS last, NULL::bigint AS searched
FROM found a
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, min(id::text)::uuid, count(*) FROM read HAVING count(*) >= :budget
ORDER BY id DESC NULLS LAST;
