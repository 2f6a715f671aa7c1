-- Lock a lake until the session ends. Returns whether it is locked: false if another session has the lock.
SELECT pg_try_advisory_lock(trioboss.lock_number('lake/' || :lake::uuid, (SELECT seed FROM trioboss.lock_seed)));
