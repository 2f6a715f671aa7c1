-- Remove jobs in any state, live or ended, without a trace; their throttle slots become free. The worker of an
-- active one is told to stop. Returns the ids that were there.
WITH live AS (
    DELETE FROM trioboss.job_common WHERE name = :queue::text AND id = ANY (:ids::uuid[]) RETURNING id, state
), ended AS (
    DELETE FROM trioboss.archive WHERE id = ANY (:ids) AND name = :queue RETURNING id, state
), slots AS (
    DELETE FROM trioboss.throttle WHERE name = :queue AND job_id = ANY (:ids)
)
SELECT id, CASE WHEN state = 'active' THEN pg_notify('trioboss', '*cancel ' || id) END
FROM (SELECT * FROM live UNION ALL SELECT * FROM ended) gone;
