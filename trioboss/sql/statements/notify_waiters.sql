-- Notify the completion waiters of these jobs that they have changed. In a transaction of its own after the one that
-- changed them: a waiter first commits its row and then reads the job, so either it sees the change or this statement
-- sees its row. One row of a job is read, however many wait for it: a reader can add a million.
SELECT trioboss.notify('*changed ' || job.id), set_config('synchronous_commit', 'off', true)
FROM unnest(:ids::uuid[]) job (id)
WHERE (SELECT true FROM trioboss.completion_waiter w WHERE w.job_id = job.id LIMIT 1);
