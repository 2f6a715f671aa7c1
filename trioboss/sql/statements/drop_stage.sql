-- Drop a stage. Does not wait for more than a second: a task that nobody waits for may still be writing to it.
SELECT set_config('lock_timeout', '1s', true), trioboss.drop_stage(s.table_name)
FROM (SELECT :stage::text AS table_name) s
WHERE s.table_name IS NOT NULL;
