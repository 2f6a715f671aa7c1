-- Time-outs that the server, the database or the role sets, which end or break sessions of a worker; 0 is none. And how
-- many of the connections are in use.
SELECT coalesce(current_setting('idle_session_timeout', true), '0') AS idle_session_timeout,
       current_setting('statement_timeout') AS statement_timeout, current_setting('lock_timeout') AS lock_timeout,
       current_setting('default_transaction_read_only') AS read_only, pg_is_in_recovery() AS standby,
       (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend') AS used,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS connections;
