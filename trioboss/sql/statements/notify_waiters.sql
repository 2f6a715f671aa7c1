-- Notify those who wait for jobs that these have ended. In a transaction of its own after the one that ended them: a
-- waiter first commits its row and then reads the job, so either it sees the end or this statement sees its row.
SELECT trioboss.notify('*ended ' || job_id), set_config('synchronous_commit', 'off', true)
FROM trioboss.completion_waiter WHERE job_id = ANY (:ids::uuid[]);
