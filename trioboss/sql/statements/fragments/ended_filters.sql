-- The filters of find_jobs that only archived jobs have: when they ended.
completed_on >= coalesce(:since::timestamptz, '-infinity') AND completed_on < coalesce(:until::timestamptz, 'infinity')
AND
