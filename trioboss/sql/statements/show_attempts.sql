-- The attempts of a job that did not end well, in order, the last :limit of them.
SELECT * FROM (
    SELECT a.attempt, a.worker, a.started_on, a.ended_on, a.outcome, a.error FROM trioboss.attempt a
    WHERE a.job_id = :id::uuid AND a.queue = :queue::text ORDER BY a.attempt DESC LIMIT :limit::bigint
) a
ORDER BY a.attempt, a.ended_on;
