-- The current role, the owner of the schema (null: there is no schema), and whether the role may act for the owner or
-- create schemas.
SELECT current_user::text, o.owner, coalesce(pg_has_role(current_user, o.owner, 'USAGE'), false) AS owns,
       has_database_privilege(current_database(), 'CREATE') AS creates
FROM (SELECT) one LEFT JOIN (
    SELECT pg_get_userbyid(nspowner)::text AS owner FROM pg_catalog.pg_namespace WHERE nspname = 'trioboss'
) o ON true;
