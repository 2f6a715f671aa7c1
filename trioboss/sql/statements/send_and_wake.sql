-- Put one job that brings nothing but its data into a standard queue, and wake who sleeps there by the same commit:
-- the word is heard as soon as the job can be seen, with no statement of its own in between.
--
-- No row: it is no such queue. Else whether the word was said. If not, wake.sql has to follow the commit: nobody
-- sleeps that we can see, but somebody may before we commit; or another sender does just this. A NOTIFY keeps a lock of
-- the whole server until the disk has our commit, and everybody else's word waits for it: so only one at a time may.
-- Nobody relies on our word for theirs, as with wake.sql: this transaction may still come to nothing.
INSERT INTO trioboss.job_common (
    id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
    start_after, expire_in, heartbeat, auto_heartbeat, max_lease_extensions,
    created_on, keep_until, delete_after, dead_letter, policy, gate)
SELECT :id::uuid, q.name, 0, :data::jsonb, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max,
       q.retry_jitter, q.retry_window, t.sent_on, q.expire_in, q.heartbeat, q.auto_heartbeat, q.max_lease_extensions,
       t.sent_on, t.sent_on + q.retention, q.delete_after, q.dead_letter, q.policy, 0
FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t
WHERE q.name = :queue::text AND q.policy = 'standard'
RETURNING (SELECT CASE WHEN EXISTS (SELECT FROM trioboss.sleeper WHERE name = :queue)
                            AND pg_try_advisory_xact_lock(hashtextextended('trioboss' || ' word', 0))
                       THEN pg_notify('trioboss', :queue || ' 0') IS NOT NULL
                       ELSE false END) AS said;
