-- A worker has ended, and given back or settled all its jobs.
WITH marks AS (DELETE FROM trioboss.sleeper WHERE worker = :worker::uuid)
DELETE FROM trioboss.worker WHERE id = :worker;
