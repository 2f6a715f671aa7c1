-- The names of the queues that get a job for an event.
SELECT queue FROM trioboss.subscription WHERE event = :event::text ORDER BY queue;
