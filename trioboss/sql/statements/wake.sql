-- Wake the dispatchers of a queue that sleep past the moment a job is due. For our own connections, in a
-- transaction of its own AFTER the one that made the job: a dispatcher first commits its mark in sleeper
-- and then looks, so either it sees the job or this statement sees its mark. Nobody asleep: no NOTIFY.
-- While another NOTIFY for the queue is on its way to commit, it serves us as well.
SELECT CASE WHEN pg_try_advisory_xact_lock(hashtextextended('trioboss' || '/wake/' || :queue, 0))
            THEN pg_notify('trioboss', :queue::text) END,
       set_config('synchronous_commit', 'off', true)
WHERE EXISTS (
    SELECT FROM trioboss.sleeper
    WHERE name = :queue
      AND until > coalesce(:due::timestamptz, statement_timestamp() + coalesce(:delay::float8, 0) * interval '1 s')
);
