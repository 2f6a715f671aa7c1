-- Tell those who wait for jobs that these have ended. In a transaction of its own after the one that ended them:
-- a watcher first commits its mark and then looks, so either it sees the end or this statement sees its mark.
SELECT pg_notify('trioboss', '*ended ' || job_id), set_config('synchronous_commit', 'off', true)
FROM trioboss.watcher WHERE job_id = ANY (:ids::uuid[]);
