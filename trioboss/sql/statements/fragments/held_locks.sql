-- The advisory locks that sessions of this database hold, each with its session. A boss that is connected holds one
-- (hold_presence.sql).
    SELECT DISTINCT (l.classid::bigint << 32) | l.objid::bigint AS lock, l.pid FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
      AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
