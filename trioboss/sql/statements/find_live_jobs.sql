-- Live jobs of a queue, by their ids, which are in the order of sending. `since` and `until` are about when they were
-- sent, and `after` is the id of the last job of a page. It reads jobs in that order until it has found enough: those
-- of a rare state are found by reading the others, except active ones, which have an index.
-- OFFSET 0: each job that was found is looked up by its id. Joined, the view would be read as a whole.
WITH found AS MATERIALIZED (
    (SELECT id FROM trioboss.live_job
     WHERE readiness = 'active' AND :state::text = 'active' AND :queued::boolean IS NOT TRUE
       AND id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
       AND created_on >= coalesce(:since::timestamptz, '-infinity') AND created_on < coalesce(:until::timestamptz, 'infinity')
       AND
\ir fragments/job_filters.sql
     ORDER BY id LIMIT :limit::bigint)
    UNION ALL
    (SELECT id FROM trioboss.live_job
     WHERE id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
       AND
\ir fragments/live_filters.sql
\ir fragments/job_filters.sql
     ORDER BY id LIMIT :limit)
)
SELECT j.* FROM found f, LATERAL (SELECT * FROM trioboss.all_jobs WHERE name = :queue AND id = f.id AND live OFFSET 0) j
ORDER BY j.id;
