-- Return a throttle slot that a send has taken, because the policy of the queue refused the job.
DELETE FROM trioboss.throttle WHERE queue = :queue::text AND slot = :slot::timestamptz AND job_id = :id::uuid;
