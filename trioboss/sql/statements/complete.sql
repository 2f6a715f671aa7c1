-- Complete jobs. Fenced: a lease that is not the active one changes nothing. `outputs` maps ids to outputs, where there
-- are any. A job leaves the live table for the archive; without keep_completed it leaves no row.
--
-- Returns a row for each job that ended here; one row without an id if none did; no row if there is no such queue.
-- If the second column, `declined`, is true, no job has ended: the queue has completion jobs, which only
-- complete_with_copy.sql makes. `handlers_to_cancel`: jobs that are ended by another caller than their own handler,
-- whose workers are notified to cancel the handler.
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
SELECT e.id, t.on_complete AS declined,
\ir fragments/cancel_handlers.sql
FROM terms t LEFT JOIN ended e ON true;
