-- complete.sql for a queue without keep_completed: the jobs leave no row, and nothing but their ids and workers is
-- read. It declines for any other queue.
WITH terms AS MATERIALIZED (
    SELECT on_complete OR keep_completed AS declined FROM trioboss.queue WHERE name = :queue::text
), ended AS (
    DELETE FROM trioboss.live_job_common
    WHERE (SELECT NOT declined FROM terms) AND
\ir fragments/active_leases.sql
    RETURNING id, worker
)
SELECT e.id, t.declined,
\ir fragments/cancel_handlers.sql
FROM terms t LEFT JOIN ended e ON true;
