-- Turn the rows of a stage into jobs, in the order of the load. For rows whose policy slot cannot be taken, because
-- neither their ids nor their keys can be those of other jobs: if one is taken nevertheless, this fails, and the load
-- with it. `rate` is how many of them may start in a second; `ahead` is how many rows of the load come before these.
-- Returns how many there are.
WITH
\ir fragments/release_stage.sql
    ORDER BY position
\ir fragments/join_backlogs.sql
