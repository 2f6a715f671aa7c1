-- The queues that send their dead letters to a queue.
SELECT name FROM trioboss.queue WHERE dead_letter = :queue::text ORDER BY name;
