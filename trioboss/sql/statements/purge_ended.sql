-- Delete ended jobs that have outlived their delete_after, where their day cannot be dropped as a whole because others of
-- it stay for longer. What a lake that holds history does not have yet stays, and so does what somebody is reading.
-- Looks at the jobs that ended from `since` until `until`, in the pages from `first` up to `after`, so that it never
-- holds back vacuum for long. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.archive a
    WHERE a.completed_on >= :since::timestamp AT TIME ZONE 'UTC' AND a.completed_on < :until::timestamp AT TIME ZONE 'UTC'
      AND a.ctid >= :first::tid AND a.ctid < :after::tid
      AND a.delete_after > interval '0' AND a.completed_on + a.delete_after < coalesce(:now::timestamptz, now())
      AND NOT EXISTS (SELECT FROM trioboss.lake l WHERE l.holds AND l.exported <= a.xid)
      AND NOT EXISTS (
          SELECT FROM trioboss.reader r
          WHERE r.until > now() AND (a.completed_on AT TIME ZONE 'UTC')::date BETWEEN r.first_day AND r.last_day)
    RETURNING xid
), noted AS (
    INSERT INTO trioboss.retired (history, xid)
    SELECT 'archive', xid FROM gone ORDER BY xid DESC LIMIT 1
    ON CONFLICT (history) DO UPDATE SET xid = EXCLUDED.xid WHERE retired.xid < EXCLUDED.xid
)
SELECT count(*) FROM gone;
