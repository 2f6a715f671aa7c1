-- Whether all ended jobs of one day have outlived their delete_after (0: kept for ever).
SELECT NOT EXISTS (
    SELECT FROM trioboss.archive
    WHERE completed_on >= :day::date::timestamp AT TIME ZONE 'UTC'
      AND completed_on < (:day::date + 1)::timestamp AT TIME ZONE 'UTC'
      AND (delete_after = interval '0' OR completed_on + delete_after >= coalesce(:now::timestamptz, now()))
);
