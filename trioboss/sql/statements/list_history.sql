-- The tables that hold the rows of a history table, with what a reader needs to divide them: how many blocks each has
-- now, about how many rows a block has, and the number of its file, which changes when the table is rewritten.
SELECT c.relname::text AS relation,
       pg_relation_size(c.oid) / current_setting('block_size')::bigint AS blocks,
       CASE WHEN c.relpages > 0 AND c.reltuples > 0 THEN c.reltuples / c.relpages END::float8 AS density,
       pg_relation_filenode(c.oid)::bigint AS file
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
JOIN pg_catalog.pg_namespace n ON n.oid = p.relnamespace
WHERE n.nspname = 'trioboss' AND p.relname = :history::text AND p.relname IN ('archive', 'attempt') AND c.relkind = 'r'
ORDER BY relation;
