-- No longer wait for a job.
DELETE FROM trioboss.completion_waiter WHERE job_id = :id::uuid AND waiter = :waiter::uuid;
