-- The fence: of the jobs in `ids`, those whose active attempt is the lease given by number and by start in `attempts` and
-- `starts`; and those in `unfenced`, whatever attempt is active. IS TRUE lets the planner hash all leases once instead of
-- comparing each with each.
-- `lock_wait` is how long this transaction waits for what another one has changed and not committed; it is set before the
-- first row is read. Without it, as long as the session does.
(SELECT CASE WHEN :lock_wait::text IS NULL THEN true ELSE set_config('lock_timeout', :lock_wait, true) <> '' END)
AND queue = :queue AND id = ANY (:ids::uuid[]) AND readiness = 'active'
AND (((id, attempt, started_on) IN (SELECT * FROM unnest(:ids, :attempts::int[], :starts::timestamptz[]))) IS TRUE
     OR id = ANY (:unfenced::uuid[]))
