-- Let a queue get a job for each event of that name. Returns the queue, or no row if there is no such queue.
INSERT INTO trioboss.subscription (event, queue)
SELECT :event::text, name FROM trioboss.queue WHERE name = :queue::text
ON CONFLICT (event, queue) DO UPDATE SET event = excluded.event
RETURNING queue;
