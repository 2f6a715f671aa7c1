-- The answer of a claim: a row about the claim, and a row for each claimed job; each with null in the columns of the
-- other. `revision` is null if there is no such queue. `took` is how long the statement ran, in seconds: a dispatcher
-- begins after its last position if that is long.
SELECT NULL AS revision, NULL AS started_on, NULL AS again, NULL AS more_after, NULL AS left_seq, NULL AS took,
       id, attempt, retry_count, priority, seq, created_on, start_after, key, options, data, notes
FROM claimed
UNION ALL
SELECT revision, now, found.jobs > c.jobs, CASE WHEN c.jobs < :limit THEN more_after END, left_seq,
       extract(epoch FROM clock_timestamp() - statement_timestamp())::float8,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT count(*) AS jobs FROM claimed) c CROSS JOIN found LEFT JOIN terms ON true
WHERE CASE WHEN :async_commit::boolean THEN set_config('synchronous_commit', 'off', true) <> '' ELSE true END
