-- Ask to be notified when a job ends. Rows of waiters that died are removed along the way.
WITH stale AS (DELETE FROM trioboss.completion_waiter WHERE until < now())
INSERT INTO trioboss.completion_waiter (job_id, waiter, until) VALUES (:id::uuid, :waiter::uuid, now() + interval '1 day')
ON CONFLICT DO NOTHING;
