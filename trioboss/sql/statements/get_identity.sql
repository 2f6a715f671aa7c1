-- Which database this is: the server's identifier, which its standbys share, and the database's number.
SELECT s.system_identifier::text, d.oid::bigint
FROM pg_catalog.pg_control_system() s, pg_catalog.pg_database d
WHERE d.datname = current_database();
