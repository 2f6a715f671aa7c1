-- The same id twice is one job, also when the first has ended: in the transaction that sent jobs with given ids,
-- take back those whose namesake is in the archive. It cannot slip by: until it ended it was in the way of the new
-- one, and by now its end is visible. Returns the ids taken back.
DELETE FROM trioboss.job_common
WHERE name = :queue::text AND id = ANY (ARRAY (
    SELECT id FROM trioboss.archive WHERE id = ANY (:ids::uuid[]) AND name = :queue
))
RETURNING id;
