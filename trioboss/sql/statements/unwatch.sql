-- No longer wait for a job.
DELETE FROM trioboss.watcher WHERE job_id = :id::uuid AND watcher = :watcher::uuid;
