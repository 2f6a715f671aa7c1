-- The fence: true for the jobs in `ids` whose last attempt is the lease given by number and by start in `attempts` and
-- `starts`. The number alone may be issued twice: claims commit asynchronously, and a crash of the server can lose one.
-- IS TRUE lets the planner hash all leases once instead of comparing each with each.
((id, attempt, started_on) IN (SELECT * FROM unnest(:ids::uuid[], :attempts::int[], :starts::timestamptz[]))) IS TRUE
