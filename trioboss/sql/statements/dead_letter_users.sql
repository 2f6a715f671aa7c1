-- Who sends dead letters to a queue: queues, and queues that have jobs which would. The latter looks at all live jobs.
SELECT name, false AS by_jobs FROM trioboss.queue WHERE dead_letter = :queue::text
UNION ALL
SELECT DISTINCT j.name, true FROM trioboss.job j JOIN trioboss.queue q ON q.name = j.name
WHERE j.dead_letter = :queue AND q.dead_letter IS DISTINCT FROM :queue AND q.name <> :queue
ORDER BY by_jobs, name;
