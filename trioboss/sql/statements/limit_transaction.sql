-- The first statement of each transaction of the dashboard: it reads only, and no statement takes longer than two
-- seconds.
SELECT set_config('statement_timeout', '2s', true), set_config('transaction_read_only', 'on', true);
