-- Put jobs that bring nothing but their data into a standard queue: all of them or, if it is no such queue, none.
-- Everything else is as the queue says. They stand in the order of the arrays.
INSERT INTO trioboss.job_common (
    id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
    start_after, expire_in, heartbeat, auto_heartbeat, max_lease_extensions,
    created_on, keep_until, delete_after, dead_letter, policy, gate)
SELECT j.id, q.name, 0, j.data, q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.retry_jitter,
       q.retry_window, t.sent_on, q.expire_in, q.heartbeat, q.auto_heartbeat, q.max_lease_extensions,
       t.sent_on, t.sent_on + q.retention, q.delete_after, q.dead_letter, q.policy, 0
FROM trioboss.queue q,
     (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t,
     unnest(:ids::uuid[], :data::jsonb[]) AS j (id, data)
WHERE q.name = :queue::text AND q.policy = 'standard';
