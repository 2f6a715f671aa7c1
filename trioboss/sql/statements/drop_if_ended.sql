-- The same id twice is one job, also when the first has ended: in the transaction that sent jobs with given ids,
-- take back those whose namesake is in the archive. It cannot slip by: until it ended it was in the way of the new
-- one, and by now its end is visible. Returns the ids taken back.
DELETE FROM trioboss.job_common
WHERE ctid = ANY (ARRAY (
    SELECT j.row
    FROM trioboss.archive a, LATERAL (
        SELECT ctid AS row FROM trioboss.job_common WHERE name = :queue::text AND id = a.id OFFSET 0
    ) j
    WHERE a.id = ANY (:ids::uuid[]) AND a.name = :queue
))
RETURNING id;
