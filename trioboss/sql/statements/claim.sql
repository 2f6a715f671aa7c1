-- Lease up to `limit` ready jobs of a queue to a worker, highest priority first, then in order of sending.
-- Two claims never get the same job, never wait for each other, and never look at more than they take.
-- Jobs start by the clock, and not when the statement reached the server: that may be before the end of the attempt that
-- they had to wait for, which the statement saw a moment later, with its snapshot.
--
-- At least one row. `again`: a job was changed under our hands, and may be claimed now. `policy` is null if there is
-- no such queue; `id` is null if there was no job. What waits for time is found by find_due.sql.
-- `lazy` commits without waiting for the disk: a claim lost in a crash of the server is a job still to be done.
WITH asked AS MATERIALIZED (
    SELECT policy, paused, coalesce(:now::timestamptz, clock_timestamp()) AS now
    FROM trioboss.queue WHERE name = :queue::text
), picked AS MATERIALIZED (
    SELECT ARRAY (
        SELECT ctid FROM trioboss.job_common
        WHERE name = :queue AND gate = 0 AND state < 'active'
          AND priority >= coalesce(:min_priority::int, -2147483648)
          AND priority <= coalesce(:max_priority::int, 2147483647)
          AND (SELECT NOT paused FROM asked)
        ORDER BY priority DESC, seq
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    ) AS jobs
), claimed AS (
    UPDATE trioboss.job_common
    SET state = 'active', worker = :worker::uuid, attempt = attempt + 1, lease_extensions = 0,
        started_on = (SELECT now FROM asked), heartbeat_on = (SELECT now FROM asked)
    WHERE ctid = ANY ((SELECT jobs FROM picked)::tid[])
    RETURNING *
)
SELECT p.again, p.policy, c.id, c.name, c.data, c.state::text, c.priority, c.attempt, c.retry_count, c.retry_limit,
       c.retry_delay, c.retry_backoff, c.retry_delay_max, c.singleton_key, c.created_on, c.start_after, c.started_on,
       c.completed_on, c.keep_until, extract(epoch FROM c.expire_in)::float8, extract(epoch FROM c.heartbeat)::float8,
       c.heartbeat_on, c.auto_heartbeat, c.max_lease_extensions, c.lease_extensions, c.output, c.progress,
       c.dead_letter, c.worker, c.source_name, c.source_id, c.source_created_on, c.source_retry_count, c.seq
FROM (
    SELECT (SELECT policy FROM asked) AS policy,
           CASE WHEN :lazy::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit,
           (SELECT cardinality(jobs) FROM picked) > (SELECT count(*) FROM claimed) AS again
) p
LEFT JOIN claimed c ON true
ORDER BY c.priority DESC, c.seq;
