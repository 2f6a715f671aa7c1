-- Which of these leases, of any queues in one table, are still held? Fenced as in complete.sql, and nothing is renewed.
SELECT id FROM trioboss.job_common
WHERE name = ANY (:queues::text[]) AND id = ANY (:ids::uuid[]) AND state = 'active'
  AND attempt = (:leases::jsonb -> id::text ->> 0)::int
  AND started_on = (:leases::jsonb -> id::text ->> 1)::timestamptz;
