-- Put one job that brings nothing but its data into a standard queue, and notify idle dispatchers by the same commit:
-- they receive it as soon as the job is visible, without a statement of its own in between.
--
-- No row: it is no such queue. Else whether the notification was sent. If not, notify_idle.sql has to follow the commit:
-- a dispatcher may become idle before we commit; or another sender is doing the same. A NOTIFY holds a lock of the whole
-- database until the commit is on disk, and all other notifications wait for it: so only one sender at a time may.
-- Unlike notify_idle.sql, no other sender may rely on this notification: this transaction may still fail.
INSERT INTO trioboss.live_job_common (id, queue, created_on, start_after, readiness, data)
SELECT :id::uuid, q.name, t.sent_on, t.sent_on, 'ready', :data::jsonb
FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t
WHERE q.name = :queue::text AND q.policy = 'standard'
RETURNING (SELECT CASE WHEN EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue)
                            AND pg_try_advisory_xact_lock(trioboss.lock_number('notify', (SELECT seed FROM trioboss.lock_seed)))
                       THEN trioboss.notify(:queue || ' 0')
                       ELSE false END) AS notified;
