-- Complete queued jobs that nobody has to run any more. The archive shows an attempt that began and ended at once, and
-- a queue with on_complete gets a completion job for each. `outputs` as in complete.sql. Returns the ids that ended
-- here.
WITH terms AS MATERIALIZED (
    SELECT keep_completed, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), ended AS (
    DELETE FROM trioboss.live_job_common
    WHERE queue = :queue AND id = ANY (:ids::uuid[]) AND readiness < 'active'
    RETURNING seq, created_on, start_after, id, worker, priority, (attempt & 1073741823) + 1 AS attempt, retry_count, queue, key,
              options, data, notes AS last_notes, unique_key, greatest((SELECT now FROM terms), started_on) AS started_on,
              greatest((SELECT now FROM terms), started_on) AS ended_on, 'completed'::trioboss.outcome AS outcome,
              CASE WHEN :outputs::jsonb IS NOT NULL THEN :outputs -> id::text END AS output
), done AS (
    SELECT * FROM ended WHERE (SELECT keep_completed FROM terms)
),
\ir fragments/archive_done.sql
,
\ir fragments/completion_jobs.sql ended=ended outcome='completed'
SELECT id FROM ended;
