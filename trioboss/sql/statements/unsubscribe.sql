-- End a subscription. Returns the queue, or no row.
DELETE FROM trioboss.subscription WHERE event = :event::text AND name = :queue::text RETURNING name;
