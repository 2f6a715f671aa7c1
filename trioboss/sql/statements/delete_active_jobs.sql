-- Remove up to `limit` active jobs of a queue; their workers are told to stop. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.job_common
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM trioboss.job_common WHERE name = :queue::text AND state = 'active' LIMIT :limit::bigint
    )) AND state = 'active'
    RETURNING id
), slots AS (
    DELETE FROM trioboss.throttle WHERE name = :queue AND job_id = ANY (ARRAY (SELECT id FROM gone))
)
SELECT count(pg_notify('trioboss', '*cancel ' || id)) FROM gone;
