-- The days (UTC) that history has rows or a table of, up to today, the oldest first; one row for each of archive and
-- attempt. A day without a table of its own has its rows in the default tables, which are nearly always empty.
SELECT h.history, h.day
FROM (
    SELECT parent.relname::text AS history, to_date(substring(child.relname FROM '_(\d{8})$'), 'YYYYMMDD') AS day
    FROM pg_catalog.pg_inherits i
    JOIN pg_catalog.pg_class child ON child.oid = i.inhrelid
    JOIN pg_catalog.pg_class parent ON parent.oid = i.inhparent
    JOIN pg_catalog.pg_namespace n ON n.oid = parent.relnamespace
    WHERE n.nspname = 'trioboss' AND parent.relname IN ('archive', 'attempt') AND child.relname ~ '_\d{8}$'
    UNION
    SELECT 'archive', (completed_on AT TIME ZONE 'UTC')::date FROM trioboss.archive_default
    UNION
    SELECT 'attempt', (ended_on AT TIME ZONE 'UTC')::date FROM trioboss.attempt_default
) h
WHERE h.day BETWEEN '0001-01-01' AND (coalesce(:now::timestamptz, now()) AT TIME ZONE 'UTC')::date
ORDER BY h.day, h.history;
