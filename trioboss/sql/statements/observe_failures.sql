-- The newest attempts that did not end well, newest first. By transaction, for which there is an index.
SELECT queue, job_id, attempt, outcome, extract(epoch FROM statement_timestamp() - ended_on)::float8 AS age, error
FROM trioboss.attempt
WHERE outcome <> 'released'
ORDER BY xid DESC LIMIT :limit::bigint;
