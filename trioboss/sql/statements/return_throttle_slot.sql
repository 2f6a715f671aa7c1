-- Return a throttle slot that a send has taken, because the policy of the queue refused the job.
SELECT trioboss.return_throttle_slot(:queue::text, :slot::timestamptz, :id::uuid);
