-- The days of history that are over, with whether everything in them may go: no row of archive lacks its time, and
-- attempts go with the oldest day of archive that stays.
SELECT p.history, p.day, p.relation
FROM (
    SELECT parent.relname AS history, to_date(substring(child.relname FROM '_(\d{8})$'), 'YYYYMMDD') AS day, child.relname AS relation
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class child ON child.oid = i.inhrelid
    JOIN pg_catalog.pg_class parent ON parent.oid = i.inhparent
    JOIN pg_catalog.pg_namespace n ON n.oid = parent.relnamespace
    WHERE n.nspname = 'trioboss' AND parent.relname IN ('archive', 'attempt') AND child.relname ~ '_\d{8}$'
) p
WHERE p.day < (coalesce(:now::timestamptz, now()) AT TIME ZONE 'UTC')::date - 1
ORDER BY p.day, p.history;
