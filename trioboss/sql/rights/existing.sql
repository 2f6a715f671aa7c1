-- Tables of queues, days and loads that are there already are open to those the tables to come will be open to.
SELECT trioboss.copy_rights(
           CASE i.inhparent WHEN 'trioboss.job'::regclass THEN 'trioboss.job_common'::regclass ELSE i.inhparent END,
           i.inhrelid)
FROM pg_inherits i
WHERE i.inhparent IN ('trioboss.job'::regclass, 'trioboss.archive'::regclass, 'trioboss.attempt'::regclass)
  AND i.inhrelid <> 'trioboss.job_common'::regclass
UNION ALL
SELECT trioboss.copy_rights('trioboss.stage_row'::regclass, format('trioboss.%I', s.table_name)::regclass)
FROM trioboss.stage s;
