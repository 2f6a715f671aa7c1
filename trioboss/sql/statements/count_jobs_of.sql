-- How many rows there are of jobs of a queue: live, ended, and attempts. For the proof that they were erased.
SELECT (SELECT count(*) FROM trioboss.live_job WHERE queue = :queue::text AND id = ANY (:ids::uuid[]))
     + (SELECT count(*) FROM trioboss.archive WHERE queue = :queue AND id = ANY (:ids))
     + (SELECT count(*) FROM trioboss.attempt WHERE queue = :queue AND job_id = ANY (:ids));
