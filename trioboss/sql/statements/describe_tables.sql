-- The tables, views and sequences of the schema with their storage options, columns and constraints: kind, table (of
-- the last three), name, and the properties as an object. An empty search_path gives all names in definitions their
-- schema. Tables of loads are left out, and of partitions what they have from their table. `owner` is null, or the
-- owner of most objects if another role owns this one.
WITH relation AS MATERIALIZED (
    SELECT c.*, p.relname::text AS parent FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
    WHERE n.nspname = 'trioboss' AND c.relkind IN ('r', 'p', 'v', 'S') AND c.relname !~ '^stage_[0-9a-f]{32}$'
), usual (owner) AS (
    SELECT mode() WITHIN GROUP (ORDER BY relowner) FROM relation
)
SELECT CASE r.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' ELSE 'table' END AS kind, NULL AS of, r.relname::text AS name,
       CASE r.relkind
           WHEN 'v' THEN jsonb_build_object('definition', pg_get_viewdef(r.oid, true))
           WHEN 'S' THEN (
               SELECT jsonb_build_object('type', format_type(s.seqtypid, NULL), 'increment by', s.seqincrement,
                                         'minvalue', s.seqmin, 'maxvalue', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle)
               FROM pg_catalog.pg_sequence s WHERE s.seqrelid = r.oid)
           ELSE jsonb_build_object(
               'partition key', pg_get_partkeydef(r.oid), 'unlogged', r.relpersistence = 'u',
               'row security', r.relrowsecurity, 'forced row security', r.relforcerowsecurity,
               'parent', r.parent, 'bound', pg_get_expr(r.relpartbound, r.oid),
               'constraint triggers', NOT EXISTS (
                   SELECT FROM pg_catalog.pg_trigger t
                   WHERE t.tgrelid = r.oid AND t.tgisinternal AND t.tgconstraint <> 0 AND t.tgenabled <> 'O')) END
           || jsonb_build_object('owner', CASE WHEN r.relowner <> u.owner THEN quote_ident(pg_get_userbyid(u.owner)) END) AS properties
FROM relation r, usual u
UNION ALL
SELECT 'option', r.relname::text, split_part(o, '=', 1), jsonb_build_object('value', substr(o, strpos(o, '=') + 1))
FROM relation r, unnest(r.reloptions) o
UNION ALL
SELECT 'column', r.relname::text, a.attname::text,
       jsonb_build_object('default', CASE a.attgenerated WHEN '' THEN pg_get_expr(d.adbin, d.adrelid) END)
           || CASE a.attinhcount WHEN 0 THEN jsonb_build_object(
                  'type', format_type(a.atttypid, a.atttypmod) || coalesce(
                      (SELECT ' COLLATE ' || a.attcollation::regcollation FROM pg_catalog.pg_type t
                       WHERE t.oid = a.atttypid AND t.typcollation <> a.attcollation), ''),
                  'not null', a.attnotnull,
                  'generated', CASE a.attgenerated WHEN '' THEN NULL ELSE pg_get_expr(d.adbin, d.adrelid) END) ELSE '{}' END
FROM relation r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
WHERE r.relkind IN ('r', 'p')
UNION ALL
SELECT 'constraint', r.relname::text, k.conname::text,
       jsonb_build_object('definition', pg_get_constraintdef(k.oid, true), 'key', k.contype IN ('p', 'u'))
FROM relation r JOIN pg_catalog.pg_constraint k ON k.conrelid = r.oid
WHERE k.contype IN ('c', 'f', 'p', 'u', 'x') AND k.conparentid = 0 AND k.coninhcount = 0;
