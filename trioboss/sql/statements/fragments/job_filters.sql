-- The filters of find_jobs, for live and for archived jobs: every one that is null lets all jobs pass.
queue = :queue::text
AND (:singleton_key::text IS NULL OR key = :singleton_key)
AND (:source_id::uuid IS NULL OR (notes #>> '{source,id}')::uuid = :source_id)
AND (:data::jsonb IS NULL OR data @> :data)
