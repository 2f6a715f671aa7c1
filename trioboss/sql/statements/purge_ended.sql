-- Delete up to `limit` ended jobs that have outlived their delete_after, where their day cannot be dropped as a whole:
-- because others of that day stay for longer. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.archive
    WHERE (tableoid, ctid) IN (
        SELECT tableoid, ctid FROM trioboss.archive
        WHERE delete_after > interval '0' AND completed_on + delete_after < coalesce(:now::timestamptz, now())
        LIMIT :limit::bigint
    )
    RETURNING id
)
SELECT count(*) FROM gone;
