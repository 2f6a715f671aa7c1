-- The tables of the archive: their day, null for the one of jobs that ended on a day without a table, and their pages.
SELECT to_date(substring(child.relname FROM '_(\d{8})$'), 'YYYYMMDD') AS day,
       pg_catalog.pg_relation_size(child.oid) / current_setting('block_size')::bigint AS pages
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class child ON child.oid = i.inhrelid
JOIN pg_catalog.pg_class parent ON parent.oid = i.inhparent
JOIN pg_catalog.pg_namespace n ON n.oid = parent.relnamespace
WHERE n.nspname = 'trioboss' AND parent.relname = 'archive'
ORDER BY day;
