-- Heartbeats of a worker: renew leases, of any queues in one table. Fenced as in complete.sql. Returns the ids still held, and
-- whether each was renewed: a row that an open transaction has locked is not waited for, because the other leases would
-- wait with it.
WITH lease AS MATERIALIZED (
    SELECT queue, id FROM trioboss.live_job_common
    WHERE queue = ANY (:queues::text[]) AND id = ANY (:ids::uuid[]) AND readiness = 'active'
      AND ((id, attempt, started_on) IN (SELECT * FROM unnest(:ids, :attempts::int[], :starts::timestamptz[]))) IS TRUE
), free AS MATERIALIZED (
    SELECT j.queue, j.id FROM lease l
    JOIN trioboss.live_job_common j ON j.queue = l.queue AND j.id = l.id AND j.readiness = 'active'
    FOR NO KEY UPDATE OF j SKIP LOCKED
), renewed AS (
    UPDATE trioboss.live_job_common j SET heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
    FROM free f WHERE j.queue = f.queue AND j.id = f.id AND j.readiness = 'active'
    RETURNING j.id
)
SELECT l.id, r.id IS NOT NULL AS renewed, CASE WHEN :async_commit::boolean THEN set_config('synchronous_commit', 'off', true) END
FROM lease l LEFT JOIN renewed r ON r.id = l.id;
