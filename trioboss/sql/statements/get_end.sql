-- How and when a job ended. Its data and output, which may be large, are not read.
SELECT a.outcome::text, a.completed_on FROM trioboss.archive a WHERE a.queue = :queue::text AND a.id = :id::uuid;
