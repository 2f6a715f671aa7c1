-- Remove the row of a worker that has ended, and its idle markers. A lease that it has left is lost from now on.
WITH markers AS (DELETE FROM trioboss.idle_dispatcher WHERE worker = :worker::uuid)
DELETE FROM trioboss.worker WHERE id = :worker;
