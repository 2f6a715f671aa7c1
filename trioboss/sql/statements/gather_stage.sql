-- Move the rows of a stage into another one, behind the `ahead` rows it has. For policies with unique keys, whose
-- rows are released in the order of keys and therefore all at once.
SELECT trioboss.gather_stage(s.source, :target::text, :ahead::bigint)
FROM (SELECT :source::text AS source) s
WHERE s.source IS NOT NULL;
