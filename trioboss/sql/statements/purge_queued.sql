-- Delete jobs that waited for longer than their retention. A failed job that blocks its key is not waiting, and stays.
-- Looks at the pages from `first` up to `after`, so that it never holds back vacuum for long. Returns how many.
WITH gone AS (
    DELETE FROM trioboss.job_common
    WHERE ctid >= :first::tid AND ctid < :after::tid
      AND state < 'active' AND keep_until < coalesce(:now::timestamptz, now())
    RETURNING id
)
SELECT count(*) FROM gone;
