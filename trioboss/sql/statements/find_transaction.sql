-- The session, or the prepared transaction, that runs a transaction. Of sessions of other roles, most is hidden from
-- roles without pg_read_all_stats, but not the process.
SELECT l.pid, a.usename::text, a.datname::text, nullif(a.application_name, ''), a.state,
       extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared))::float8 AS seconds, p.gid
FROM (SELECT :xid::text::xid8::xid AS xid) x
LEFT JOIN pg_catalog.pg_locks l
    ON l.locktype = 'transactionid' AND l.transactionid = x.xid AND l.granted AND l.mode = 'ExclusiveLock'
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction = x.xid;
