-- Lock the creation of lakes until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('trioboss' || ' creation of a lake', 0));
