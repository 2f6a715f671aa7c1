-- Before a queue is made: remove what an older one of that name left behind, because a send was open while it was deleted.
WITH gone AS (
    DELETE FROM trioboss.job_common
    WHERE name = :queue::text AND NOT EXISTS (SELECT FROM trioboss.queue WHERE name = :queue)
    RETURNING id
)
DELETE FROM trioboss.throttle WHERE name = :queue AND job_id IN (SELECT id FROM gone);
