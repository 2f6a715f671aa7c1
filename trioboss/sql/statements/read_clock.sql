-- The time of the database.
SELECT coalesce(:now::timestamptz, statement_timestamp());
