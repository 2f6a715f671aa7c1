-- Lock the creation of lakes until the transaction ends.
SELECT pg_advisory_xact_lock(trioboss.lock_number('lakes', (SELECT seed FROM trioboss.lock_seed)));
