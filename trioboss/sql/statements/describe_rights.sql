-- The rights in the schema that somebody else than the owner has: role (PUBLIC for all), kind, object, column, right.
WITH relation AS MATERIALIZED (
    SELECT c.* FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'trioboss' AND c.relkind IN ('r', 'p', 'v', 'S')
      AND c.relname !~ '^(j[0-9a-f]{32}|(archive|attempt)_[0-9]{8}|stage_[0-9a-f]{32})$'
), given (grantee, owner, kind, object, "column", "right") AS (
    SELECT a.grantee, c.relowner, 'table', c.relname::text, NULL, a.privilege_type FROM relation c, aclexplode(c.relacl) a
    UNION ALL
    SELECT a.grantee, c.relowner, 'table', c.relname::text, t.attname::text, a.privilege_type
    FROM relation c JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
    UNION ALL
    SELECT a.grantee, p.proowner, 'function', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', NULL,
           a.privilege_type
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace,
         aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    WHERE n.nspname = 'trioboss'
    UNION ALL
    SELECT a.grantee, n.nspowner, 'schema', '', NULL, a.privilege_type
    FROM pg_catalog.pg_namespace n, aclexplode(n.nspacl) a WHERE n.nspname = 'trioboss'
)
SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee)::text END, kind, object, "column", "right"
FROM given WHERE grantee <> owner;
