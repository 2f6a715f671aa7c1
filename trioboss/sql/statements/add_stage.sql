-- Make a table in which one task of a load stages its rows.
SELECT trioboss.add_stage(s.load, s.table_name)
FROM (SELECT :load::text AS load, :table_name::text AS table_name) s
WHERE s.load IS NOT NULL;
