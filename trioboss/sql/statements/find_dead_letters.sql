-- Queued dead letter jobs, the oldest first, after the id `after`: where they came from, and what they carry.
SELECT j.id, j.notes #>> '{source,queue}' AS source, j.notes #>> '{error,name}' AS error, j.priority, j.key, j.data
FROM trioboss.live_job j
WHERE j.queue = :queue::text AND j.readiness IN ('deferred', 'waiting', 'ready') AND j.id > :after::uuid AND j.id <= :last::uuid
  AND j.notes #>> '{source,queue}' IS NOT NULL AND (:source::text IS NULL OR j.notes #>> '{source,queue}' = :source)
ORDER BY j.id LIMIT :limit::bigint;
