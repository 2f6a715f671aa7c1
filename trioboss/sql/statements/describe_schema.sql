-- The indexes, triggers, rules, functions and types of the schema: kind, table or type (of its parts), name, and the
-- properties as an object. An empty search_path gives all names in definitions their schema. Tables of loads are left
-- out. A partition has the indexes and triggers of its table: an index is listed if it is invalid, and of a trigger
-- whether it is enabled. `owner` is null, or the owner of most functions if another role owns this function or type.
WITH relation AS MATERIALIZED (
    SELECT c.* FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'trioboss' AND c.relname !~ '^stage_[0-9a-f]{32}(_|$)'
), routine AS MATERIALIZED (
    SELECT p.*, l.lanname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE n.nspname = 'trioboss'
), type AS MATERIALIZED (
    SELECT t.* FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE n.nspname = 'trioboss' AND t.typtype IN ('e', 'd')
), usual (owner) AS (
    SELECT mode() WITHIN GROUP (ORDER BY proowner) FROM routine
)
SELECT 'index' AS kind, t.relname::text AS of, r.relname::text AS name,
       jsonb_build_object('valid', i.indisvalid, 'unique', i.indisunique)
           || CASE WHEN h.inhrelid IS NULL AND k.oid IS NULL THEN jsonb_build_object('definition', pg_get_indexdef(r.oid, 0, true))
                   ELSE '{}' END AS properties
FROM relation r JOIN pg_catalog.pg_index i ON i.indexrelid = r.oid JOIN relation t ON t.oid = i.indrelid
LEFT JOIN pg_catalog.pg_inherits h ON h.inhrelid = r.oid
LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = r.oid AND k.contype IN ('p', 'u', 'x')
WHERE NOT i.indisvalid OR (h.inhrelid IS NULL AND k.oid IS NULL)
UNION ALL
SELECT 'trigger', r.relname::text, t.tgname::text,
       jsonb_build_object('enabled', t.tgenabled = 'O')
           || CASE t.tgparentid WHEN 0 THEN jsonb_build_object('definition', pg_get_triggerdef(t.oid, true)) ELSE '{}' END
FROM relation r JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid
WHERE NOT t.tgisinternal OR (t.tgparentid <> 0 AND t.tgconstraint = 0)
UNION ALL
SELECT 'rule', r.relname::text, w.rulename::text, '{}'
FROM relation r JOIN pg_catalog.pg_rewrite w ON w.ev_class = r.oid WHERE w.ev_type <> '1'    -- that of a view
UNION ALL
SELECT 'function', NULL, f.proname || '(' || pg_get_function_identity_arguments(f.oid) || ')',
       jsonb_build_object('result', pg_get_function_result(f.oid), 'language', f.lanname, 'volatility', f.provolatile,
                          'parallel', f.proparallel, 'security definer', f.prosecdef, 'strict', f.proisstrict,
                          'settings', to_jsonb(f.proconfig), 'body', f.prosrc,
                          'owner', CASE WHEN f.proowner <> u.owner THEN quote_ident(pg_get_userbyid(u.owner)) END)
FROM routine f, usual u
UNION ALL
SELECT 'type', NULL, t.typname::text,
       jsonb_build_object('base', CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod) END,
                          'not null', t.typnotnull, 'default', t.typdefault, 'collation', t.typcollation::regcollation,
                          'owner', CASE WHEN t.typowner <> u.owner THEN quote_ident(pg_get_userbyid(u.owner)) END)
FROM type t, usual u
UNION ALL
SELECT 'check', t.typname::text, k.conname::text, jsonb_build_object('definition', pg_get_constraintdef(k.oid, true))
FROM type t JOIN pg_catalog.pg_constraint k ON k.contypid = t.oid WHERE k.contype = 'c'
UNION ALL
SELECT 'value', t.typname::text, e.enumlabel::text,
       jsonb_build_object('after', lag(e.enumlabel::text) OVER (PARTITION BY t.oid ORDER BY e.enumsortorder))
FROM type t JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid;
