-- Delete up to `limit` jobs that waited for longer than their retention. A failed job that blocks its key is not
-- waiting, and stays. Returns the queues they were in.
WITH gone AS (
    DELETE FROM trioboss.job
    WHERE (tableoid, ctid) IN (
        SELECT tableoid, ctid FROM trioboss.job
        WHERE state < 'active' AND keep_until < coalesce(:now::timestamptz, now())
        LIMIT :limit::bigint
    ) AND state < 'active'
    RETURNING name
)
SELECT name, count(*) FROM gone GROUP BY name;
