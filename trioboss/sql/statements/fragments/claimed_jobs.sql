-- The answer of a claim: a row for each claimed job, and one row without an `id` if there was none. The columns before
-- `id` are the same in all rows; `revision` is null if there is no such queue.
-- `took` is how long the statement ran, in seconds: a dispatcher begins after its last position if that is long.
SELECT h.revision, h.started_on, h.again, h.more_after, h.left_seq, h.took, c.id, c.attempt, c.retry_count, c.priority,
       c.seq, c.created_on, c.start_after, c.key, c.options, c.data, c.notes
FROM (
    SELECT (SELECT revision FROM terms) AS revision, (SELECT now FROM terms) AS started_on,
           found.jobs > (SELECT count(*) FROM claimed) AS again, found.left_seq,
           CASE WHEN (SELECT count(*) FROM claimed) < :limit THEN found.more_after END AS more_after,
           extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS took,
           CASE WHEN :async_commit::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit
    FROM found
) h
LEFT JOIN claimed c ON true
