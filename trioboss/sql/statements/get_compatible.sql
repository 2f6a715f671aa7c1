-- The oldest programs that work with the schema, by the version that they need; null: only those of its own version.
SELECT compatible FROM trioboss.version ORDER BY version DESC LIMIT 1;
