-- Delete jobs of a queue, live and ended, with their attempts. The worker of an active one is told to stop.
-- Returns how many live jobs, ended jobs and attempts were there.
WITH live AS (
    DELETE FROM trioboss.live_job WHERE queue = :queue::text AND id = ANY (:ids::uuid[])
    RETURNING id, readiness = 'active' AS active
), ended AS (
    DELETE FROM trioboss.archive WHERE queue = :queue AND id = ANY (:ids) RETURNING id
), attempts AS (
    DELETE FROM trioboss.attempt WHERE queue = :queue AND job_id = ANY (:ids) RETURNING job_id
), slots AS (
    DELETE FROM trioboss.throttle WHERE queue = :queue AND job_id = ANY (:ids)
), told AS (
    SELECT count(pg_notify('trioboss', '*cancel ' || id)) AS number FROM live WHERE active
)
SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM ended), (SELECT count(*) FROM attempts)
FROM told WHERE number >= 0;
