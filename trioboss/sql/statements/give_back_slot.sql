-- Free the throttle slot of a job that was refused after it had taken its slot.
DELETE FROM trioboss.throttle t
WHERE t.job_id = :id::uuid AND NOT EXISTS (SELECT FROM trioboss.job_common j WHERE j.name = t.name AND j.id = t.job_id);
