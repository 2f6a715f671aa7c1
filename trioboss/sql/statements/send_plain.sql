-- Put jobs that bring nothing but their data into a standard queue: all of them or, if it is no such queue, none.
-- Their order is that of the arrays.
INSERT INTO trioboss.live_job_common (id, queue, created_on, start_after, readiness, data)
SELECT j.id, q.name, t.sent_on, t.sent_on, 'ready', j.data
FROM trioboss.queue q,
     (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t,
     unnest(:ids::uuid[], :data::jsonb[]) AS j (id, data)
WHERE q.name = :queue::text AND q.policy = 'standard';
