-- Take the lock that shows other bosses that this one is alive; it is held until the session ends. rescue_leases.sql,
-- in the leader, finds workers whose session holds no such lock. It is a shared lock: a broken session that the server
-- still takes for alive must not keep the next one out.
SELECT pg_advisory_lock_shared(:lock::bigint);
