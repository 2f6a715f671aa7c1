-- Whether one day of history may be dropped: all its ended jobs have outlived their delete_after (0: kept for ever), all
-- its rows, attempts included, are in the lakes that retention waits for, and no task is reading it.
SELECT NOT EXISTS (
    SELECT FROM trioboss.archive
    WHERE completed_on >= :day::date::timestamp AT TIME ZONE 'UTC'
      AND completed_on < (:day::date + 1)::timestamp AT TIME ZONE 'UTC'
      AND (delete_after = interval '0' OR completed_on + delete_after >= coalesce(:now::timestamptz, now()))
) AND NOT EXISTS (
    SELECT FROM trioboss.archive a JOIN trioboss.lake l ON l.holds AND l.exported <= a.xid
    WHERE a.completed_on >= :day::date::timestamp AT TIME ZONE 'UTC'
      AND a.completed_on < (:day::date + 1)::timestamp AT TIME ZONE 'UTC'
) AND NOT EXISTS (
    SELECT FROM trioboss.attempt a JOIN trioboss.lake l ON l.holds AND l.exported <= a.xid
    WHERE a.ended_on >= :day::date::timestamp AT TIME ZONE 'UTC'
      AND a.ended_on < (:day::date + 1)::timestamp AT TIME ZONE 'UTC'
) AND NOT EXISTS (
    SELECT FROM trioboss.reader WHERE :day::date BETWEEN first_day AND last_day AND until > now()
);
