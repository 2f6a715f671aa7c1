-- Forget a lake: retention no longer waits for it. Returns which of its tables were known.
DELETE FROM trioboss.export WHERE lake = :lake::text RETURNING history;
