-- The leases of this worker that are not in `known`: after a claim whose answer was lost, those of which it has no
-- record; and those that it has given up, and that may still be in the database.
SELECT id, attempt, started_on FROM trioboss.live_job_common
WHERE queue = :queue::text AND readiness = 'active' AND worker = :worker::uuid AND NOT id = ANY (:known::uuid[]);
