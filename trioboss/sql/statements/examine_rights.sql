-- Of the rights in four arrays of the same length those that the current role lacks, by their positions: schemas,
-- tables, sequences and functions; a column that is empty stands for the whole table. An object that does not exist is
-- left out.
SELECT g.position
FROM unnest(:kinds::text[], :names::text[], :columns::text[], :rights::text[]) WITH ORDINALITY
     g (kind, name, "column", "right", position)
WHERE NOT CASE g.kind
    WHEN 'schema' THEN has_schema_privilege(g.name, g."right")
    WHEN 'sequence' THEN has_sequence_privilege(to_regclass(g.name), g."right")
    WHEN 'function' THEN has_function_privilege(to_regprocedure(g.name), g."right")
    ELSE CASE g."column" WHEN '' THEN has_table_privilege(to_regclass(g.name), g."right")
                         ELSE has_column_privilege(to_regclass(g.name), (
                                  SELECT a.attnum FROM pg_catalog.pg_attribute a
                                  WHERE a.attrelid = to_regclass(g.name) AND a.attname = g."column"), g."right") END
    END
ORDER BY g.position;
