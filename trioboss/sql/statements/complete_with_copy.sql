-- complete.sql for a queue with on_complete: every job that ends here leaves a completion job in the queue named after
-- it. The trigger fill_in_job fills in the columns of completion jobs, and notifies their workers.
WITH terms AS MATERIALIZED (
    SELECT keep_completed FROM trioboss.queue WHERE name = :queue::text
), ended AS (
    DELETE FROM trioboss.live_job_common
    WHERE
\ir fragments/active_leases.sql
    RETURNING *, coalesce(:now::timestamptz, statement_timestamp()) AS ended_on,
              CASE WHEN :outputs::jsonb IS NOT NULL THEN :outputs -> id::text END AS output
), done AS (
    SELECT *, 'completed'::trioboss.outcome AS outcome, notes AS last_notes FROM ended WHERE (SELECT keep_completed FROM terms)
),
\ir fragments/archive_done.sql
,
\ir fragments/completion_jobs.sql ended=ended outcome='completed'
SELECT e.id, false AS declined,
\ir fragments/cancel_handlers.sql
FROM terms t LEFT JOIN ended e ON true;
