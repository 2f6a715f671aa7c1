-- The right to write to a lake, as long as the session lasts. Returns whether we have it.
SELECT pg_try_advisory_lock(hashtextextended('trioboss' || ' lake ' || :lake::text, 0));
