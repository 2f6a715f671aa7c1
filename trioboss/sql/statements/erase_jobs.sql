-- Delete jobs of a queue, live and ended, with their attempts. The worker of an active one is notified, and stops.
-- Returns how many live jobs, ended jobs, attempts and active jobs were there.
WITH live AS (
    DELETE FROM trioboss.live_job WHERE queue = :queue::text AND id = ANY (:ids::uuid[])
    RETURNING id, readiness = 'active' AS active
), ended AS (
    DELETE FROM trioboss.archive WHERE queue = :queue AND id = ANY (:ids) RETURNING id
), attempts AS (
    DELETE FROM trioboss.attempt WHERE queue = :queue AND job_id = ANY (:ids) RETURNING job_id
), slots AS (
    DELETE FROM trioboss.throttle WHERE queue = :queue AND job_id = ANY (:ids)
)
SELECT (SELECT count(*) FROM live), (SELECT count(*) FROM ended), (SELECT count(*) FROM attempts),
       (SELECT count(trioboss.notify('*cancel ' || id)) FROM live WHERE active);
