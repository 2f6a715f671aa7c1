-- Put one job that brings nothing but its data into a standard queue, and notify idle dispatchers (payload QUEUE 0) by
-- the same commit: they receive it as soon as the job is visible, without another statement in between.
-- No row: it is no standard queue. True: they are notified. False: notify_idle.sql has to follow the commit, because no
-- dispatcher was idle (one may be by then, after a claim that did not see this job), or another sender holds the lock.
-- Only one sender at a time notifies by its own commit: a NOTIFY holds a lock of the whole database until the commit is
-- on disk, and all other notifications wait for it. This lock is not that of notify_idle.sql, whose holder notifies for
-- other senders, too: this transaction may still fail.
INSERT INTO trioboss.live_job_common (id, queue, created_on, start_after, readiness, data)
SELECT :id::uuid, q.name, t.sent_on, t.sent_on, 'ready', :data::jsonb
FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t
WHERE q.name = :queue::text AND q.policy = 'standard'
RETURNING (SELECT CASE WHEN EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue)
                            AND pg_try_advisory_xact_lock(trioboss.lock_number('notify', (SELECT seed FROM trioboss.lock_seed)))
                       THEN trioboss.notify(:queue || ' 0')
                       ELSE false END) AS notified;
