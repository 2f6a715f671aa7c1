-- The version of the schema: the last migration that was applied.
SELECT coalesce(max(version), 0) FROM trioboss.version;
