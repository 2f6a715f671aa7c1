-- Delete up to `limit` ended jobs that have outlived their delete_after, where their day cannot be dropped as a whole:
-- because others of that day stay for longer. What a lake that holds history does not have yet stays, and so does what
-- somebody is reading. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.archive
    WHERE (tableoid, ctid) IN (
        SELECT a.tableoid, a.ctid FROM trioboss.archive a
        WHERE a.delete_after > interval '0' AND a.completed_on + a.delete_after < coalesce(:now::timestamptz, now())
          AND NOT EXISTS (
              SELECT FROM trioboss.export e WHERE e.holds AND e.history = 'archive' AND e.exported <= a.xid)
          AND NOT EXISTS (
              SELECT FROM trioboss.reader r
              WHERE r.until > now() AND (a.completed_on AT TIME ZONE 'UTC')::date BETWEEN r.first_day AND r.last_day)
        LIMIT :limit::bigint
    )
    RETURNING id
)
SELECT count(*) FROM gone;
