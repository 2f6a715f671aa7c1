-- Make the queue that completion jobs of a queue go to, and start filling it. With `history`, jobs that ended
-- before and are still there get their completion job now. Returns the name of that queue.
WITH asked AS (
    UPDATE trioboss.queue SET on_complete = true
    WHERE name = :queue::text AND NOT on_complete
    RETURNING name
), made AS (
    INSERT INTO trioboss.queue (name) SELECT '__state__completed__' || name FROM asked
    ON CONFLICT DO NOTHING
), past AS (
    -- The queue is as new as this statement, so its defaults are written out.
    INSERT INTO trioboss.job_common (
        id, name, data, start_after, created_on, keep_until, delete_after, retry_limit, retry_delay, retry_backoff,
        retry_jitter, expire_in, auto_heartbeat, max_lease_extensions, policy, gate)
    SELECT gen_random_uuid(), '__state__completed__' || a.name, jsonb_build_object(
               'request', jsonb_build_object('id', a.id, 'name', a.name, 'data', a.data),
               'response', a.output, 'failed', a.state = 'failed', 'state', a.state, 'createdOn', a.created_on,
               'startedOn', a.started_on, 'completedOn', a.completed_on, 'retryCount', a.retry_count),
           statement_timestamp(), statement_timestamp(), statement_timestamp() + interval '14 days', interval '7 days',
           2, 0, false, 0, interval '15 minutes', true, 3, 'standard', 0
    FROM trioboss.all_jobs a
    WHERE a.name IN (SELECT name FROM asked) AND a.state IN ('completed', 'failed') AND :history::boolean
    ORDER BY a.completed_on, a.seq
)
SELECT '__state__completed__' || name FROM trioboss.queue WHERE name = :queue;
