-- Make the queue that completion jobs of a queue go to, and start filling it. With `history`, jobs that ended
-- before and are still there get their completion job now. Returns the name of that queue. lock_queue.sql goes before
-- it.
WITH asked AS (
    UPDATE trioboss.queue SET on_complete = true
    WHERE name = :queue::text AND NOT on_complete
    RETURNING name
), made AS (
    INSERT INTO trioboss.queue (name) SELECT '__state__completed__' || name FROM asked
    ON CONFLICT DO NOTHING
), past AS (
    -- With its readiness: the trigger fill_in_job would not find a queue that this very statement makes.
    INSERT INTO trioboss.live_job (queue, data, created_on, start_after, readiness)
    SELECT '__state__completed__' || a.name,
           trioboss.completion_of(a.id, a.name, a.data, a.state, a.output, a.created_on, a.started_on, a.completed_on, a.retry_count),
           statement_timestamp(), statement_timestamp(), 'ready'
    FROM trioboss.all_jobs a
    WHERE a.name IN (SELECT name FROM asked) AND a.state IN ('completed', 'failed') AND :history::boolean
    ORDER BY a.completed_on, a.seq
)
SELECT '__state__completed__' || name FROM trioboss.queue WHERE name = :queue;
