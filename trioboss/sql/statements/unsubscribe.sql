-- End a subscription. Returns the queue, or no row.
DELETE FROM trioboss.subscription WHERE event = :event::text AND queue = :queue::text RETURNING queue;
