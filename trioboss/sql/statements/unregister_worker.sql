-- A worker has ended, and settled or released all its jobs.
WITH markers AS (DELETE FROM trioboss.idle_dispatcher WHERE worker = :worker::uuid)
DELETE FROM trioboss.worker WHERE id = :worker;
