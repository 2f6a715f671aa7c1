-- Take the lock by which others see that this boss is alive; it is ours until the session ends. It is a shared one: a
-- session that broke, and of which the server does not know that yet, must not keep the next one out.
SELECT pg_advisory_lock_shared(:lock::bigint);
