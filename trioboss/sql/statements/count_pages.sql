-- The tables that one table is made of, and how many pages each has.
SELECT child.relname::text AS name,
       pg_catalog.pg_relation_size(child.oid) / current_setting('block_size')::bigint AS pages
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class child ON child.oid = i.inhrelid
JOIN pg_catalog.pg_class parent ON parent.oid = i.inhparent
JOIN pg_catalog.pg_namespace n ON n.oid = parent.relnamespace
WHERE n.nspname = 'trioboss' AND parent.relname = :table::text
ORDER BY name;
