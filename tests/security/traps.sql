-- For each function and operator of Postgres that our statements might use: one of the same name in public, with other
-- types, such that an argument that Postgres would have to convert for its own fits exactly.
DO $$
DECLARE
    kinds oid[] := array['int2', 'int4', 'int8', 'float8', 'numeric', 'text', 'varchar', 'name', 'date', 'timestamp',
                         'timestamptz', 'interval', 'bool', 'uuid', 'jsonb', 'regclass']::regtype[];
    trap record;
    helper text;
BEGIN
    FOR trap IN
        WITH near (wanted, given) AS (
            SELECT k, k FROM unnest(kinds) k
            UNION
            SELECT casttarget, castsource FROM pg_cast
            WHERE castcontext = 'i' AND casttarget = ANY (kinds) AND castsource = ANY (kinds)
        ), own AS (
            SELECT 'function' AS what, proname::text AS name, prorettype::regtype AS result, proargtypes::oid[] AS types
            FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset AND provariadic = 0
              AND pronargs IN (1, 2) AND proargtypes::oid[] <@ kinds AND prorettype = ANY (kinds || 'void'::regtype::oid)
              AND proname IN (
                  'hashtextextended', 'round', 'to_timestamp', 'floor', 'to_date', 'right', 'pg_notify', 'power',
                  'pg_advisory_xact_lock', 'pg_try_advisory_xact_lock', 'pg_try_advisory_lock', 'has_table_privilege',
                  'pg_advisory_lock_shared', 'timezone', 'extract', 'md5', 'pg_relation_size', 'jsonb_array_length')
            UNION ALL
            SELECT 'operator', oprname::text, oprresult::regtype, array[oprleft, oprright]
            FROM pg_operator
            WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b' AND oprresult = ANY (kinds)
              AND array[oprleft, oprright] <@ kinds
              AND oprname IN ('+', '-', '*', '/', '||', '&', '->', '->>', '<', '<=', '>', '>=', '=', '<>')
        )
        SELECT DISTINCT ON (o.what, o.name, a.given, b.given)
               o.what, o.name, o.result, array_remove(array[a.given, b.given], NULL)::oid[] AS types
        FROM own o
        JOIN near a ON a.wanted = o.types[array_lower(o.types, 1)]
        LEFT JOIN near b ON b.wanted = o.types[array_lower(o.types, 1) + 1]
        WHERE NOT EXISTS (
            SELECT FROM own same WHERE same.what = o.what AND same.name = o.name
              AND same.types::text[] = array_remove(array[a.given, b.given], NULL)::text[])
    LOOP
        helper := CASE trap.what WHEN 'function' THEN trap.name ELSE 'trap_' || md5(trap::text) END;
        EXECUTE format(
            'CREATE FUNCTION public.%I (%s) RETURNS %s LANGUAGE plpgsql AS %L', helper,
            (SELECT string_agg(format_type(t, NULL), ', ' ORDER BY n) FROM unnest(trap.types) WITH ORDINALITY u (t, n)),
            trap.result, 'begin raise ''led astray''; end');
        IF trap.what = 'operator' THEN
            EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%I)', trap.name,
                           format_type(trap.types[1], NULL), format_type(trap.types[2], NULL), helper);
        END IF;
    END LOOP;
END $$;
