-- Remove up to `limit` ended jobs of a queue, the failed ones that block a strict FIFO key included. Returns how many.
WITH ended AS (
    DELETE FROM trioboss.archive
    WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM trioboss.archive WHERE queue = :queue::text LIMIT :limit::bigint)
    RETURNING id
), blocking AS (
    DELETE FROM trioboss.live_job_common
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM trioboss.live_job_common WHERE queue = :queue AND
\ir fragments/blocks_key.sql
        LIMIT :limit
    ))
    RETURNING id
), slots AS (
    DELETE FROM trioboss.throttle
    WHERE queue = :queue AND job_id = ANY (ARRAY (SELECT id FROM ended UNION ALL SELECT id FROM blocking))
)
SELECT (SELECT count(*) FROM ended) + (SELECT count(*) FROM blocking);
