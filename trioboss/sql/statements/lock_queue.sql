-- Lock the row of a queue for a statement of the same transaction that changes it and uses the tables of jobs. It waits
-- for a session that deletes the queue; that statement would wait, too, and hold the tables that are to be dropped.
SELECT name FROM trioboss.queue WHERE name = :queue::text FOR NO KEY UPDATE;
