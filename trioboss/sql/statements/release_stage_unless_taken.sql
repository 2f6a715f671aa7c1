-- Turn the rows of a stage into jobs, except those that are refused: by the queue's policy, or because their id
-- was sent before. To find that out costs nearly as much as to write the row: release_stage.sql does not.
-- Order is the order of the load, except where keys are unique: there it is the order of keys, so that two loads never
-- wait for each other in a cycle.
-- `rate` is how many of them may start in a second; `ahead` is how many rows of the load come before these.
-- Returns how many became jobs.
WITH
\ir fragments/release_stage.sql
    ORDER BY CASE WHEN :by_key::boolean THEN singleton_key END, position
    ON CONFLICT DO NOTHING
\ir fragments/join_backlogs.sql
