-- The server as the doctor examines it, in one row: its version, its settings, and the oldest snapshot that is open.
SELECT current_setting('server_version') AS version, pg_backend_pid() AS backend, clock_timestamp() AS now,
       s.ssl, s.version AS ssl_version,
       coalesce(inet_client_addr() <<= ANY (ARRAY['127.0.0.0/8', '::1/128']::inet[]), true) AS local,
       current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync,
       current_setting('autovacuum') AS autovacuum,
       (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()
          AND state IS DISTINCT FROM 'idle') AS oldest_snapshot,
       pg_notification_queue_usage() AS notify_queue
FROM (SELECT) one LEFT JOIN pg_stat_ssl s ON s.pid = pg_backend_pid();
