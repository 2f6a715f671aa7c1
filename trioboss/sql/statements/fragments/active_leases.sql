-- The fence: of the jobs in `ids`, those whose active attempt is the lease given by number and by start in `attempts` and
-- `starts`; and those in `unfenced`, whatever attempt is active. IS TRUE lets the planner hash all leases once instead of
-- comparing each with each.
queue = :queue AND id = ANY (:ids::uuid[]) AND readiness = 'active'
AND (((id, attempt, started_on) IN (SELECT * FROM unnest(:ids, :attempts::int[], :starts::timestamptz[]))) IS TRUE
     OR id = ANY (:unfenced::uuid[]))
