-- Of these leases, those that an open transaction is just changing: to settle one of them would wait for its end. A lease that
-- is held no more is not among them.
WITH unlocked AS MATERIALIZED (
    SELECT id FROM trioboss.live_job_common
    WHERE
\ir fragments/active_leases.sql
    FOR UPDATE SKIP LOCKED
)
SELECT id FROM trioboss.live_job_common
WHERE id <> ALL (ARRAY (SELECT id FROM unlocked)) AND
\ir fragments/active_leases.sql
;
