-- Take the lock by which others see that this boss is alive; it is ours until the session ends. Workers that were
-- missed while the connection was down are there again.
WITH back AS (
    UPDATE trioboss.worker SET gone_since = NULL WHERE boss = :boss::uuid AND gone_since IS NOT NULL
)
SELECT pg_advisory_lock(:lock::bigint);
