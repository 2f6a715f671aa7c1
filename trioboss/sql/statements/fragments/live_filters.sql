-- The filters of find_jobs that only live jobs have: a state other than active, queued or not, and when they were sent.
(:state::text IS NULL OR :state =
\ir fragments/live_state.sql
)
AND :state IS DISTINCT FROM 'active' AND (:queued::boolean IS NOT TRUE OR readiness < 'active')
AND created_on >= coalesce(:since::timestamptz, '-infinity') AND created_on < coalesce(:until::timestamptz, 'infinity')
AND
