-- How far history is sealed: all transactions before `sealed` have ended, so none of their rows can still appear.
-- `next` is the first number that no transaction had yet.
SELECT pg_snapshot_xmin(s.now)::text::bigint AS sealed, pg_snapshot_xmax(s.now)::text::bigint AS next,
       current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS standby
FROM (SELECT pg_current_snapshot() AS now) s;
