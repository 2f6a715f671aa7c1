-- Complete jobs. Fenced: a lease that is not the active one changes nothing. `outputs` maps ids to outputs, where there
-- are any. A job leaves the live table for the archive; without keep_completed it leaves no row.
--
-- At least one row if the queue exists: the ids that ended here. Nothing ends while `on_complete` is true: the
-- queue wants completion jobs, and complete_with_copy.sql is the statement to use. `elsewhere` names jobs that somebody
-- else than their handler ends: the worker of each is told to stop.
WITH terms AS MATERIALIZED (
    SELECT on_complete, keep_completed FROM trioboss.queue WHERE name = :queue::text
), ended AS (
    DELETE FROM trioboss.live_job_common
    WHERE (SELECT NOT on_complete FROM terms) AND
\ir fragments/active_leases.sql
    RETURNING *
), done AS (
    SELECT *, 'completed'::trioboss.outcome AS outcome, coalesce(:now::timestamptz, statement_timestamp()) AS ended_on,
           CASE WHEN :outputs::jsonb IS NOT NULL THEN :outputs -> id::text END AS output, notes AS last_notes
    FROM ended WHERE (SELECT keep_completed FROM terms)
),
\ir fragments/archive_done.sql
SELECT e.id, t.on_complete,
\ir fragments/cancel_elsewhere.sql
FROM terms t LEFT JOIN ended e ON true;
