-- The last audit of each history, the newest first.
SELECT source, ended_on, since, until, queues, jobs, attempts, violations, possible
FROM trioboss.history_audit ORDER BY ended_on DESC, source LIMIT :limit::bigint;
