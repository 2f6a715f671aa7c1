-- Cancel jobs: queued ones will not run, and the worker of an active one is notified (`*cancel ID`). Its boss receives
-- that in actors/router.py, checks the lease (actors/lease_checker.py) and cancels the handler (actors/attempts.py).
-- The throttle slots of the jobs become free.
-- `ended_on` is not before the start of the attempt: a claim writes clock_timestamp(), which may be later than the
-- statement_timestamp() of a cancellation that waited for it.
-- Returns the ids cancelled here.
WITH cancelled AS (
    DELETE FROM trioboss.live_job_common
    WHERE queue = :queue::text AND id = ANY (:ids::uuid[]) AND readiness <= 'active'
    RETURNING *, greatest(coalesce(:now::timestamptz, statement_timestamp()), started_on) AS ended_on
), done AS (
    SELECT *, 'cancelled'::trioboss.outcome AS outcome, nullif(notes -> 'error', 'null') AS output, notes AS last_notes
    FROM cancelled
),
\ir fragments/archive_done.sql
, remembered AS (
    INSERT INTO trioboss.attempt (job_id, queue, key, attempt, worker, started_on, ended_on, outcome)
    SELECT id, queue, key, attempt, worker, started_on, ended_on, 'cancelled' FROM cancelled WHERE readiness = 'active'
), slots AS (
    DELETE FROM trioboss.throttle WHERE job_id = ANY (ARRAY (SELECT id FROM cancelled WHERE notes ? 'singleton_on'))
)
SELECT id, CASE WHEN readiness = 'active' THEN trioboss.notify('*cancel ' || id) END FROM cancelled;
