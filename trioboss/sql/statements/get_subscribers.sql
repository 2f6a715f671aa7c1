-- The queues that want a job for an event.
SELECT q.name
FROM trioboss.subscription s JOIN trioboss.queue q ON q.name = s.name
WHERE s.event = :event::text
ORDER BY q.name;
