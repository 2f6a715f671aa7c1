-- The state that users see of a live job, as the view all_jobs derives it.
CASE readiness WHEN 'active' THEN 'active' WHEN 'ended' THEN 'failed' ELSE CASE WHEN attempt > 0 THEN 'retry' ELSE 'created' END END
