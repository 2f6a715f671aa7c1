-- Heartbeats of a worker: renew leases, of any queues in one table. Fenced as in complete.sql. Returns the ids still
-- held, and whether each was renewed: a row that an open transaction has locked is not waited for, because the other
-- leases would wait with it. Arrays of ids instead of joins: the plan is the same whatever the size of the table was
-- when it was made.
WITH unlocked AS MATERIALIZED (
    SELECT id FROM trioboss.live_job_common
    WHERE queue = ANY (:queues::text[]) AND id = ANY (:ids::uuid[]) AND readiness = 'active' AND
\ir fragments/fence.sql
    FOR NO KEY UPDATE SKIP LOCKED
), renewed AS (
    UPDATE trioboss.live_job_common SET heartbeat_on = coalesce(:now::timestamptz, statement_timestamp())
    WHERE queue = ANY (:queues) AND id = ANY (ARRAY (SELECT id FROM unlocked)) AND readiness = 'active'
    RETURNING id, CASE WHEN :async_commit::boolean THEN set_config('synchronous_commit', 'off', true) END
)
SELECT id, true AS renewed FROM renewed
UNION ALL
SELECT id, false FROM trioboss.live_job_common
WHERE queue = ANY (:queues) AND id = ANY (:ids) AND readiness = 'active' AND id <> ALL (ARRAY (SELECT id FROM unlocked)) AND
\ir fragments/fence.sql
;
