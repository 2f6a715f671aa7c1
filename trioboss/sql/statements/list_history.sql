-- The tables in which a table that Spark may read (`history`) keeps its rows, with what a reader needs to cut them into
-- pieces: the day (null: any), how many blocks there are now, how many rows a block has about, and the number of the
-- file, which changes when the table is rewritten.
SELECT c.relname::text AS relation,
       CASE WHEN c.relname ~ '_\d{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day,
       pg_relation_size(c.oid) / current_setting('block_size')::bigint AS blocks,
       CASE WHEN c.relpages > 0 AND c.reltuples > 0 THEN c.reltuples / c.relpages END::float8 AS density,
       pg_relation_filenode(c.oid)::bigint AS file
FROM pg_catalog.pg_class p
JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
LEFT JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid
JOIN pg_catalog.pg_class c ON c.oid = coalesce(i.inhrelid, p.oid)
WHERE n.nspname = 'trioboss' AND p.relname = :history::text AND c.relkind = 'r'
  AND p.relname IN ('archive', 'attempt', 'job', 'queue', 'load', 'rejected')
ORDER BY day NULLS LAST, relation;
