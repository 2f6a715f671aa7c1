-- Before a queue is made: remove what an older one of that name left, because a send was open while it was deleted.
WITH gone AS (
    DELETE FROM trioboss.live_job_common
    WHERE queue = :queue::text AND NOT EXISTS (SELECT FROM trioboss.queue WHERE name = :queue)
    RETURNING id
), checks AS (
    DELETE FROM trioboss.backlog_check
    WHERE queue = :queue AND NOT EXISTS (SELECT FROM trioboss.queue WHERE name = :queue)
)
DELETE FROM trioboss.throttle WHERE queue = :queue AND job_id IN (SELECT id FROM gone);
