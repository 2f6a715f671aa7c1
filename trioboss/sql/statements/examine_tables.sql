-- How many rows, living and dead, the tables have that every claim reads.
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = 'trioboss' AND (relname ~ '^live_job_common$|^j[0-9a-f]{32}$' OR relname = 'backlog_check')
ORDER BY relname;
