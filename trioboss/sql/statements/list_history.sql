-- The tables of a history or of the jobs (`history`), with what a reader needs to cut them into pieces: the day (null:
-- any), how many blocks there are now, how many rows a block has about, and the file, which changes if it is rewritten.
SELECT c.relname::text AS relation,
       CASE WHEN c.relname ~ '_\d{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day,
       pg_relation_size(c.oid) / current_setting('block_size')::bigint AS blocks,
       CASE WHEN c.relpages > 0 AND c.reltuples > 0 THEN c.reltuples / c.relpages END::float8 AS density,
       pg_relation_filenode(c.oid)::bigint AS file
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = 'trioboss' AND p.relname = :history::text AND p.relname IN ('archive', 'attempt', 'job')
ORDER BY day NULLS LAST, relation;
