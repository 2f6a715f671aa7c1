-- Heartbeats of a caller: renew leases. Unlike renew.sql, which workers use, it waits for rows that are locked. Fenced
-- as in complete.sql. Returns the ids still held.
UPDATE trioboss.live_job_common
SET heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
WHERE queue = ANY (:queues::text[]) AND id = ANY (:ids::uuid[]) AND readiness = 'active'
  AND (
\ir fragments/fence.sql
       OR id = ANY (:unfenced::uuid[]))
RETURNING id, CASE WHEN :async_commit::boolean THEN set_config('synchronous_commit', 'off', true) END;
