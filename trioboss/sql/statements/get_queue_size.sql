-- Count the jobs of a queue in the states before a given one, in the order created, retry, active, completed,
-- cancelled, failed. Ended ones are those of the last day: the whole archive may have millions. It is read only if
-- ended states are asked for.
SELECT (SELECT count(*) FROM trioboss.live_job_common
        WHERE queue = :queue::text AND readiness < 'active' AND (b.n > 2 OR (b.n = 2 AND attempt = 0)))
     + (SELECT count(*) FROM trioboss.live_job_common WHERE queue = :queue AND readiness = 'active' AND b.n > 3)
     + CASE WHEN b.n > 4 THEN (
           SELECT count(*) FROM trioboss.archive
           WHERE queue = :queue AND completed_on > statement_timestamp() - interval '1 day'
             AND outcome < CASE b.n WHEN 5 THEN 'cancelled' WHEN 6 THEN 'failed' END::trioboss.outcome) ELSE 0 END
FROM trioboss.queue q,
     (SELECT array_position(ARRAY['created', 'retry', 'active', 'completed', 'cancelled', 'failed'], :before::text) AS n) b
WHERE q.name = :queue;
