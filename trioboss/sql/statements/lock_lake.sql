-- Lock a lake until the session ends. Waits 2 s at most, and then raises lock_not_available: a program that has just
-- ended keeps its lock until the server has noticed that.
SELECT set_config('lock_timeout', '2s', true),
       pg_advisory_lock(trioboss.lock_number('lake/' || :lake::uuid, (SELECT seed FROM trioboss.lock_seed)));
