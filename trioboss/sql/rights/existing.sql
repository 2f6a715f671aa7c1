-- Existing tables of queues, days and loads get the rights that new ones will get.
SELECT trioboss.copy_rights(
           CASE i.inhparent WHEN 'trioboss.live_job'::regclass THEN 'trioboss.live_job_common'::regclass ELSE i.inhparent END,
           i.inhrelid)
FROM pg_inherits i
WHERE i.inhparent IN ('trioboss.live_job'::regclass, 'trioboss.archive'::regclass, 'trioboss.attempt'::regclass)
  AND i.inhrelid <> 'trioboss.live_job_common'::regclass
UNION ALL
SELECT trioboss.copy_rights('trioboss.stage_row'::regclass, format('trioboss.%I', s.table_name)::regclass)
FROM trioboss.stage s;
