-- The objects of the schema: kind, table (of columns, constraints, indexes and triggers), name, definition. Tables that are
-- made for one queue, day or load are left out. With the schema in the search_path, names in definitions have no schema.
WITH relation AS MATERIALIZED (
    SELECT c.* FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'trioboss' AND c.relname !~ '^(j[0-9a-f]{32}|(archive|attempt)_[0-9]{8}|stage_[0-9a-f]{32})(_|$)'
), routine AS MATERIALIZED (
    SELECT p.* FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'trioboss'
)
SELECT CASE relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' ELSE 'table' END AS kind, NULL AS of, relname::text AS name,
       concat_ws(' ', CASE relkind WHEN 'v' THEN pg_get_viewdef(oid, true) ELSE relkind::text END, relpersistence::text,
                 array(SELECT unnest(reloptions) ORDER BY 1)::text, pg_get_partkeydef(oid)) AS definition
FROM relation WHERE relkind IN ('r', 'p', 'v', 'S')
UNION ALL
SELECT 'column', r.relname::text, a.attname::text,
       format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
           || coalesce(CASE a.attgenerated WHEN 's' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED'
                                           ELSE ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END, '')
FROM relation r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
WHERE r.relkind IN ('r', 'p')
UNION ALL
SELECT 'constraint', r.relname::text, k.conname::text, pg_get_constraintdef(k.oid, true)
FROM relation r JOIN pg_catalog.pg_constraint k ON k.conrelid = r.oid WHERE k.contype IN ('c', 'f', 'p', 'u')
UNION ALL
SELECT 'index', t.relname::text, r.relname::text,
       pg_get_indexdef(r.oid, 0, true) || CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
FROM relation r JOIN pg_catalog.pg_index i ON i.indexrelid = r.oid JOIN relation t ON t.oid = i.indrelid
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = r.oid)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = r.oid)
UNION ALL
SELECT 'trigger', r.relname::text, t.tgname::text,
       pg_get_triggerdef(t.oid, true) || CASE t.tgenabled WHEN 'O' THEN '' ELSE ' (disabled)' END
FROM relation r JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid
WHERE NOT t.tgisinternal AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = r.oid)
UNION ALL
SELECT 'function', NULL, proname || '(' || pg_get_function_identity_arguments(oid) || ')',
       concat_ws(' ', pg_get_function_result(oid), provolatile, proparallel, prosecdef, proconfig::text, prosrc)
FROM routine
UNION ALL
SELECT 'type', NULL, t.typname::text,
       coalesce((SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid),
                format_type(t.typbasetype, t.typtypmod) || ' ' ||
                (SELECT string_agg(pg_get_constraintdef(k.oid, true), ' ') FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid))
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = 'trioboss' AND t.typtype IN ('e', 'd');
