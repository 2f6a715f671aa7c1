-- The fence: of the jobs in `ids`, those whose active attempt is the lease given by number and by start in `attempts`
-- and `starts`; and those in `unfenced`, whatever attempt is active. IS TRUE lets the planner hash all leases once
-- instead of comparing each with each.
-- `lock_wait` is how long this transaction waits for each lock of another one; null leaves the lock_timeout of the
-- session. It is set in this condition because the condition is evaluated before the first row is locked.
(SELECT CASE WHEN :lock_wait::text IS NULL THEN true ELSE set_config('lock_timeout', :lock_wait, true) <> '' END)
AND queue = :queue AND id = ANY (:ids::uuid[]) AND readiness = 'active'
AND (((id, attempt, started_on) IN (SELECT * FROM unnest(:ids, :attempts::int[], :starts::timestamptz[]))) IS TRUE
     OR id = ANY (:unfenced::uuid[]))
