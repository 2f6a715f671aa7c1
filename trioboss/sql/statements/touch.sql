-- Heartbeats: renew leases, of any queues in one table. Fenced as in complete.sql. Returns the ids still held.
UPDATE trioboss.job_common
SET heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
WHERE name = ANY (:queues::text[]) AND id = ANY (:ids::uuid[]) AND state = 'active'
  AND (:leases::jsonb -> id::text ->> 0 IS NULL
       OR (attempt = (:leases::jsonb -> id::text ->> 0)::int
           AND started_on = (:leases::jsonb -> id::text ->> 1)::timestamptz))
RETURNING id, CASE WHEN :lazy::boolean THEN set_config('synchronous_commit', 'off', true) END;
