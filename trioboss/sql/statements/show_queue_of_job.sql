-- The queue that has a job of this id, live or ended: one search by an index in each queue.
SELECT q.name FROM trioboss.queue q
WHERE EXISTS (SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.id = :id::uuid)
   OR EXISTS (SELECT FROM trioboss.archive a WHERE a.queue = q.name AND a.id = :id)
LIMIT 1;
