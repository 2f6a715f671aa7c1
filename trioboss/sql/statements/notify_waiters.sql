-- Notify the completion waiters of these jobs that they have changed. In a transaction of its own after the one that
-- changed them: a waiter first commits its row and then reads the job, so either it sees the change or this statement
-- sees its row.
SELECT trioboss.notify('*changed ' || job_id), set_config('synchronous_commit', 'off', true)
FROM trioboss.completion_waiter WHERE job_id = ANY (:ids::uuid[]);
