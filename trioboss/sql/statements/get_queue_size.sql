-- Count the jobs of a queue in the states before a given one.
SELECT (SELECT count(*) FROM trioboss.job_common WHERE name = :queue::text AND state < :before::text::trioboss.job_state)
     + (SELECT count(*) FROM trioboss.archive WHERE name = :queue AND state < :before::text::trioboss.job_state
        AND :before::text::trioboss.job_state > 'completed')
FROM trioboss.queue WHERE name = :queue;
