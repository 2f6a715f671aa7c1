-- After a claim whose answer was lost: the leases that this worker was given but has no record of. `known` are those it
-- has.
SELECT id, attempt, started_on FROM trioboss.live_job_common
WHERE queue = :queue::text AND readiness = 'active' AND worker = :worker::uuid AND NOT id = ANY (:known::uuid[]);
