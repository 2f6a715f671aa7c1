-- The queue as it is now, and the terms of the leases that a claim gives.
-- The loader replaces live_job_common here, too: a statement for a queue with a table of its own compares with that.
-- If the queue has another table now (it was deleted and created again, and the caller has not noticed), it counts as
-- paused: its jobs are not here, so its backlog checks must not be answered.
-- Statements ask (SELECT NOT paused FROM terms): as a subquery it is evaluated once, and of a paused queue no job is
-- read.
terms AS MATERIALIZED (
    SELECT revision, paused OR table_name <> 'live_job_common' AS paused, heartbeat, c.now, c.now + expire_in * interval '1 s' AS expires_on
    FROM trioboss.queue, (SELECT coalesce(:now::timestamptz, clock_timestamp()) AS now) c
    WHERE name = :queue::text
)
