-- The answer of a claim: at least one row. `revision` is null if there is no such queue, `id` if there was no job.
SELECT h.revision, h.started_on, h.again, h.more_after, c.id, c.attempt, c.retry_count, c.priority, c.seq, c.created_on,
       c.start_after, c.key, c.options, c.data, c.notes
FROM (
    SELECT (SELECT revision FROM terms) AS revision, (SELECT now FROM terms) AS started_on,
           found.jobs > (SELECT count(*) FROM claimed) AS again,
           CASE WHEN (SELECT count(*) FROM claimed) < :limit THEN found.more_after END AS more_after,
           CASE WHEN :async_commit::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit
    FROM found
) h
LEFT JOIN claimed c ON true
