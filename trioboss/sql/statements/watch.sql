-- Ask to be told when a job ends. Marks of watchers that died go with the next watch.
WITH stale AS (DELETE FROM trioboss.watcher WHERE until < now())
INSERT INTO trioboss.watcher (job_id, watcher, until) VALUES (:id::uuid, :watcher::uuid, now() + interval '1 day')
ON CONFLICT DO NOTHING;
