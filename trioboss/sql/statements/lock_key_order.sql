-- The right to decide whose turn it is in a queue with a keyed policy, until the end of the transaction.
-- Only taken by our own short transactions, never in the caller's.
SELECT pg_advisory_xact_lock(hashtextextended('trioboss' || ' place ' || :queue::text, 0));
