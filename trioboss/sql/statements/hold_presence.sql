-- Take the lock that shows others that this boss is alive; it is held until the session ends. It is a shared lock: a
-- broken session that the server still takes for alive must not keep the next one out.
SELECT pg_advisory_lock_shared(:lock::bigint);
