-- Remove up to `limit` active jobs of a queue; their workers are notified, and stop. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.live_job_common
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM trioboss.live_job_common WHERE queue = :queue::text AND readiness = 'active' LIMIT :limit::bigint
    )) AND readiness = 'active'
    RETURNING id
), slots AS (
    DELETE FROM trioboss.throttle WHERE queue = :queue AND job_id = ANY (ARRAY (SELECT id FROM gone))
)
SELECT count(trioboss.notify('*cancel ' || id)) FROM gone;
