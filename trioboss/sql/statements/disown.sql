-- After a claim whose answer got lost: the jobs that this worker was given but never saw are queued again.
-- `known` are those it has.
WITH unseen AS MATERIALIZED (
    SELECT id, attempt, started_on FROM trioboss.job_common
    WHERE worker = :worker::uuid AND state = 'active' AND name = :queue::text AND NOT id = ANY (:known::uuid[])
)
SELECT id, attempt, started_on FROM unseen;
