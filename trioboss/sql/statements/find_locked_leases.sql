-- Which of these leases has another, open transaction locked? To settle one of them would have to wait for the end of
-- that transaction. A lease that is not active any more is not returned.
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
