-- Remove up to `limit` ended jobs of a queue, live blockers of a strict FIFO key included. Returns how many.
WITH ended AS (
    DELETE FROM trioboss.archive
    WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM trioboss.archive WHERE name = :queue::text LIMIT :limit::bigint)
    RETURNING id
), blocking AS (
    DELETE FROM trioboss.job_common
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM trioboss.job_common WHERE name = :queue AND state > 'active' LIMIT :limit
    ))
    RETURNING id
), slots AS (
    DELETE FROM trioboss.throttle
    WHERE name = :queue AND job_id = ANY (ARRAY (SELECT id FROM ended UNION ALL SELECT id FROM blocking))
)
SELECT (SELECT count(*) FROM ended) + (SELECT count(*) FROM blocking);
