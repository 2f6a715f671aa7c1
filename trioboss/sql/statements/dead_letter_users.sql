-- Queues whose dead letters go to a queue, and queues that have live jobs which would. The latter reads all live jobs
-- that override an option.
SELECT name, false AS by_jobs FROM trioboss.queue WHERE dead_letter = :queue::text
UNION ALL
SELECT DISTINCT j.queue, true FROM trioboss.live_job j JOIN trioboss.queue q ON q.name = j.queue
WHERE j.options ->> 'dead_letter' = :queue AND q.dead_letter IS DISTINCT FROM :queue AND q.name <> :queue
ORDER BY by_jobs, name;
