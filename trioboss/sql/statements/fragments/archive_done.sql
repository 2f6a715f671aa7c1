-- Write the jobs in `done` to the archive. The archive has no column for `unique_key`: it goes into the notes, where
-- fragments/revived_jobs.sql finds it if the job is queued again.
archived AS (
    INSERT INTO trioboss.archive (
        seq, created_on, start_after, started_on, completed_on, id, worker, priority, attempt, retry_count, outcome,
        policy, queue, key, options, data, output, notes)
    SELECT seq, created_on, start_after, started_on, ended_on, id, worker, priority, attempt, retry_count, outcome,
           (SELECT q.policy::trioboss.policy FROM trioboss.queue q WHERE q.name = :queue), queue, key, options, data, output,
           CASE WHEN unique_key IS NULL THEN last_notes ELSE coalesce(last_notes, '{}') || jsonb_build_object('unique_key', unique_key) END
    FROM done
)
