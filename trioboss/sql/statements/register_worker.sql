-- A worker begins, or is there again. Its row stands before its first claim, so that its jobs can be found if it dies.
-- Behind a transaction pooler, instead of holding a session lock, it says again and again that it is there.
INSERT INTO trioboss.worker (id, boss, name, queue, lock)
VALUES (:worker::uuid, :boss::uuid, :name::text, :queue::text, :lock::bigint)
ON CONFLICT (id) DO UPDATE SET gone_since = NULL, seen_on = now(), lock = excluded.lock;
