-- The admin owns the schema: it migrates, and creates, changes, pauses and deletes queues. Functions that act for
-- the owner act for it. Parts that it has already are not touched: changing hands takes an exclusive lock.
ALTER SCHEMA "trioboss" OWNER TO :"role";
DO $$
DECLARE
    owner oid := (SELECT nspowner FROM pg_namespace WHERE oid = '"trioboss"'::regnamespace);
    command text;
BEGIN
    FOR command IN
        SELECT format('ALTER TABLE %s OWNER TO %s', oid::regclass, owner::regrole) FROM pg_class
        WHERE relnamespace = '"trioboss"'::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
          AND relowner <> owner
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO %s', oid::regprocedure, owner::regrole) FROM pg_proc
        WHERE pronamespace = '"trioboss"'::regnamespace AND proowner <> owner
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO %s', oid::regtype, owner::regrole) FROM pg_type
        WHERE typnamespace = '"trioboss"'::regnamespace AND typtype IN ('e', 'd') AND typowner <> owner
    LOOP
        EXECUTE command;
    END LOOP;
END $$;
