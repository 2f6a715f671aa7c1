-- Does the schema exist, whatever is in it?
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'trioboss');
