-- The first statement of each transaction of an action: a lock that another transaction holds is awaited for two
-- seconds, and no statement takes longer than ten. A person waits for the answer, and the action holds locks that jobs
-- need.
SELECT set_config('lock_timeout', '2s', true), set_config('statement_timeout', '10s', true);
