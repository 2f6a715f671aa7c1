-- The right to admit jobs of a queue from their backlogs, until the end of the transaction. Statements that follow in
-- the transaction have a snapshot newer than the lock. Only taken by our own short transactions, never in the caller's.
SELECT pg_advisory_xact_lock(trioboss.lock_number('admission/' || :queue::text, (SELECT seed FROM trioboss.lock_seed)));
