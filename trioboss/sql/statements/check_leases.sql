-- Which of these leases, of any queues in one table, are still held? Fenced as in complete.sql, and nothing is renewed.
SELECT id FROM trioboss.live_job_common
WHERE queue = ANY (:queues::text[]) AND id = ANY (:ids::uuid[]) AND readiness = 'active' AND
\ir fragments/fence.sql
;
