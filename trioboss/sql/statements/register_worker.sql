-- A worker begins, or has reconnected. Its row exists before its first claim, so that its jobs can be found if it dies.
-- Behind a transaction pooler, where no session lock can be held, it repeats this to stay alive.
INSERT INTO trioboss.worker (id, boss, name, queue, lock, pid, info)
VALUES (:worker::uuid, :boss::uuid, :name::text, :queue::text, :lock::bigint, :pid::int, :info::jsonb)
ON CONFLICT (id) DO UPDATE SET gone_since = NULL, seen_on = now(), lock = excluded.lock, pid = excluded.pid;
