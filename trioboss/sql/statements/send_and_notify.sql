-- Put one job that brings nothing but its data into a standard queue, and notify idle dispatchers (payload QUEUE 0) by
-- the same commit: they receive it as soon as the job is visible, without another statement in between.
--
-- No row: it is no standard queue, and nothing was sent. Else true if the notification was sent, or false if
-- notify_idle.sql has to follow the commit:
--   No dispatcher was idle. One may have become idle since, after a claim that did not see this job.
--   Another sender holds the advisory lock: it is notifying. Only one at a time does so by its own commit, because a
--   NOTIFY holds a lock of the whole database until the commit is on disk, and all other notifications wait for it.
--   The notification could not be sent (trioboss.notify).
-- The lock is not that of notify_idle.sql, where a sender relies on the notification of the one that holds it: this
-- transaction may still fail.
INSERT INTO trioboss.live_job_common (id, queue, created_on, start_after, readiness, data)
SELECT :id::uuid, q.name, t.sent_on, t.sent_on, 'ready', :data::jsonb
FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t
WHERE q.name = :queue::text AND q.policy = 'standard'
RETURNING (SELECT CASE WHEN EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue)
                            AND pg_try_advisory_xact_lock(trioboss.lock_number('notify', (SELECT seed FROM trioboss.lock_seed)))
                       THEN trioboss.notify(:queue || ' 0')
                       ELSE false END) AS notified;
