-- The job of that id, live or ended, if it passes the filters of find_jobs.
SELECT * FROM trioboss.all_jobs
WHERE name = :queue::text AND id = :id::uuid
  AND (:state::text IS NULL OR state = :state) AND (:queued::boolean IS NOT TRUE OR state IN ('created', 'retry'))
  AND (:singleton_key::text IS NULL OR singleton_key = :singleton_key)
  AND (:source_id::uuid IS NULL OR source_id = :source_id)
  AND (:data::jsonb IS NULL OR data @> :data)
  AND coalesce(completed_on, created_on) >= coalesce(:since::timestamptz, '-infinity')
  AND coalesce(completed_on, created_on) < coalesce(:until::timestamptz, 'infinity');
