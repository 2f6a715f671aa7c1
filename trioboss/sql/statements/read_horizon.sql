-- How far history is sealed: all transactions before `sealed` have ended, so none of their rows can still appear.
-- `next` is the first id that no transaction has had yet.
SELECT pg_snapshot_xmin(s.now)::text::bigint AS sealed, pg_snapshot_xmax(s.now)::text::bigint AS next
FROM (SELECT pg_current_snapshot() AS now) s;
