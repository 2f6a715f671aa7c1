-- Remove jobs in any state, live or ended, without a trace; their throttle slots become free. The worker of an
-- active one is notified, and stops. Returns the ids that were there.
WITH live AS (
    DELETE FROM trioboss.live_job_common WHERE queue = :queue::text AND id = ANY (:ids::uuid[])
    RETURNING id, readiness = 'active' AS active
), ended AS (
    DELETE FROM trioboss.archive WHERE queue = :queue AND id = ANY (:ids) RETURNING id, false AS active
), slots AS (
    DELETE FROM trioboss.throttle
    WHERE queue = :queue AND job_id = ANY (ARRAY (SELECT id FROM live UNION ALL SELECT id FROM ended))
)
SELECT id, CASE WHEN active THEN trioboss.notify('*cancel ' || id) END
FROM (SELECT * FROM live UNION ALL SELECT * FROM ended) gone;
