-- The jobs of a queue that have one of the ids or the key, live or ended, and the jobs that have a copy of their data: dead
-- letter jobs, and completion jobs. For erasing; there is no index for the copies, so history is scanned.
-- Returns queue and id.
WITH RECURSIVE everything AS NOT MATERIALIZED (
    SELECT queue, id, key, data, notes FROM trioboss.live_job
    UNION ALL
    SELECT queue, id, key, data, notes FROM trioboss.archive
), found AS (
    SELECT queue, id FROM everything WHERE queue = :queue::text AND (id = ANY (:ids::uuid[]) OR key = :key::text)
    UNION
    SELECT e.queue, e.id
    FROM found f
    JOIN everything e ON f.id::text = coalesce(e.notes #>> '{source,id}', CASE
        WHEN starts_with(e.queue, '__state__completed__') THEN e.data #>> '{request,id}' END)
)
SELECT queue, id FROM found;
