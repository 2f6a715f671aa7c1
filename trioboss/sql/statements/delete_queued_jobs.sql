-- Remove up to `limit` jobs that wait in a queue. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.job_common
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM trioboss.job_common WHERE name = :queue::text AND state < 'active' LIMIT :limit::bigint
    )) AND state < 'active'
    RETURNING id
), slots AS (
    DELETE FROM trioboss.throttle WHERE name = :queue AND job_id = ANY (ARRAY (SELECT id FROM gone))
)
SELECT count(*) FROM gone;
