-- The attempts of one job that did not end well, in order. (A completed job is the record of its own last attempt.)
SELECT attempt, worker, started_on, ended_on, outcome, error FROM trioboss.attempt
WHERE job_id = :id::uuid AND queue = :queue::text
ORDER BY ended_on, attempt;
