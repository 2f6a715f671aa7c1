-- Free the throttle slot that a job took before it was refused.
DELETE FROM trioboss.throttle WHERE name = :queue::text AND job_id = :id::uuid AND slot = :slot::timestamptz;
