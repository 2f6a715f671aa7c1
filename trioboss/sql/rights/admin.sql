-- The admin owns the schema: it migrates, and creates, changes, pauses and deletes queues. Functions that act for
-- the owner act for it. Parts that it has already are not touched: changing hands takes an exclusive lock.

-- A role that is no superuser hands over only to a role that it is a member of. Since Postgres 16 the maker of a role
-- may make itself a member, and is none before.
SET LOCAL grants.admin = :"role";
DO $$
BEGIN
    IF NOT pg_has_role(current_setting('grants.admin'), 'USAGE') THEN
        EXECUTE format('GRANT %I TO CURRENT_USER', current_setting('grants.admin'));
    END IF;
END $$;
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
