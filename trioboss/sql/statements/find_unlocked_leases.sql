-- Of these leases, those that no open transaction is just changing. A rescue ends them without waiting for a caller who has
-- settled one of the others and not committed yet: that one is examined again in the next round.
SELECT id FROM trioboss.live_job_common
WHERE
\ir fragments/active_leases.sql
FOR UPDATE SKIP LOCKED;
