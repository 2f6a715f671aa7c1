-- purge_ended.sql for ended jobs in no table of a day, because theirs did not exist when they ended: few, if any.
WITH gone AS (
    DELETE FROM trioboss.archive_default
    WHERE ctid IN (
        SELECT a.ctid FROM trioboss.archive_default a
        WHERE a.delete_after > interval '0' AND a.completed_on + a.delete_after < coalesce(:now::timestamptz, now())
          AND NOT EXISTS (SELECT FROM trioboss.export e WHERE e.holds AND e.history = 'archive' AND e.exported <= a.xid)
          AND NOT EXISTS (
              SELECT FROM trioboss.reader r
              WHERE r.until > now() AND (a.completed_on AT TIME ZONE 'UTC')::date BETWEEN r.first_day AND r.last_day)
        LIMIT :limit::bigint
    )
    RETURNING id
)
SELECT count(*) FROM gone;
