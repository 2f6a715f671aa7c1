-- Delete up to `limit` ended jobs of a day that have outlived their delete_after, where the day cannot be dropped as a
-- whole: those of `queue`, or, without a queue, those that override delete_after. Jobs that a lake which holds history
-- does not have yet stay. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.archive
    WHERE completed_on >= :day::date::timestamp AT TIME ZONE 'UTC'       -- here, too: no other day has these rows
      AND completed_on < (:day::date + 1)::timestamp AT TIME ZONE 'UTC' AND (tableoid, ctid) IN (
        SELECT a.tableoid, a.ctid
        FROM trioboss.archive a
        WHERE a.completed_on >= :day::date::timestamp AT TIME ZONE 'UTC'
          AND a.completed_on < (:day::date + 1)::timestamp AT TIME ZONE 'UTC'
          AND (a.queue = :queue::text AND (a.options ? 'delete_after') IS NOT TRUE
               OR :queue IS NULL AND a.options ? 'delete_after' AND (a.options ->> 'delete_after')::float8 > 0)
          AND a.completed_on + interval '1 s' * coalesce((a.options ->> 'delete_after')::float8,
                  (SELECT delete_after FROM trioboss.queue WHERE name = :queue), 604800) < coalesce(:now::timestamptz, now())
          AND NOT EXISTS (SELECT FROM trioboss.lake l WHERE l.holds AND l.exported <= a.xid)
        LIMIT :limit::bigint
    )
    RETURNING xid
), noted AS (
    INSERT INTO trioboss.deleted_history (history, xid)
    SELECT 'archive', xid FROM gone ORDER BY xid DESC LIMIT 1
    ON CONFLICT (history) DO UPDATE SET xid = EXCLUDED.xid WHERE deleted_history.xid < EXCLUDED.xid
)
SELECT count(*) FROM gone;
