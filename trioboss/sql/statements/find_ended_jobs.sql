-- Ended jobs of a queue, by their ids, which are in the order of sending. `since` and `until` are about when they
-- ended, and leave out whole days; `after` is the id of the last job of a page. `outcome` is for jobs that failed or
-- were cancelled, which have an index; nearly all others completed.
-- outcome <> 'completed': the condition of archive_unsuccessful, which the planner does not infer from a parameter.
-- OFFSET 0: each job that was found is looked up by its id. Joined, the view would be read as a whole.
WITH found AS MATERIALIZED (
    (SELECT id, completed_on FROM trioboss.archive
     WHERE outcome = :outcome::trioboss.outcome AND outcome <> 'completed'
       AND id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
       AND
\ir fragments/ended_filters.sql
\ir fragments/job_filters.sql
     ORDER BY id LIMIT :limit::bigint)
    UNION ALL
    (SELECT id, completed_on FROM trioboss.archive
     WHERE :outcome IS NULL AND (:state::text IS NULL OR outcome = 'completed')
       AND id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
       AND
\ir fragments/ended_filters.sql
\ir fragments/job_filters.sql
     ORDER BY id LIMIT :limit)
)
SELECT j.*
FROM found f, LATERAL (
    SELECT * FROM trioboss.all_jobs WHERE name = :queue AND id = f.id AND completed_on = f.completed_on AND NOT live OFFSET 0
) j
ORDER BY j.id;
