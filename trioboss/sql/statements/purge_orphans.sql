-- Delete up to `limit` jobs whose queue is gone: their send was open while it was deleted. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.job
    WHERE (tableoid, ctid) IN (
        SELECT j.tableoid, j.ctid FROM trioboss.job j
        WHERE NOT EXISTS (SELECT FROM trioboss.queue q WHERE q.name = j.name)
        LIMIT :limit::bigint
    )
    RETURNING id
)
SELECT count(*) FROM gone;
