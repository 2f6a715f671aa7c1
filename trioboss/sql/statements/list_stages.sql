-- The stages of a load, and those that were forgotten for a day. Returns their tables.
SELECT table_name FROM trioboss.stage
WHERE load = :load::text OR created_on < coalesce(:now::timestamptz, now()) - interval '1 day'
ORDER BY created_on;
