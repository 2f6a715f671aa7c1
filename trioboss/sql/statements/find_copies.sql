-- The jobs that an erasure is about: those given (`queues` and `ids`, side by side), whether there are rows of them or
-- not, those of `queue` with the key, be it of a live job, an ended one, or an attempt whose job was deleted, and all
-- jobs that have a copy of their data: dead letter jobs, redriven ones, and completion jobs. There is no index for the
-- copies, so history is scanned. Returns queue and id.
-- NOT MATERIALIZED: each part reads what its own condition needs, by an index if there is one, and no copy of all
-- history.
WITH RECURSIVE everything AS NOT MATERIALIZED (
    SELECT queue, id, key, data, notes FROM trioboss.live_job
    UNION ALL
    SELECT queue, id, key, data, notes FROM trioboss.archive
), found AS (
    SELECT g.queue, g.id FROM unnest(:queues::text[], :ids::uuid[]) g (queue, id) WHERE g.id IS NOT NULL
    UNION
    SELECT queue, id FROM everything WHERE queue = :queue::text AND key = :key::text
    UNION
    SELECT queue, job_id FROM trioboss.attempt WHERE queue = :queue AND key = :key
    UNION
    SELECT e.queue, e.id
    FROM found f
    JOIN everything e ON f.id::text = coalesce(e.notes #>> '{source,id}', e.notes ->> 'redriven', CASE
        WHEN starts_with(e.queue, '__state__completed__') THEN e.data #>> '{request,id}' END)
)
SELECT queue, id FROM found;
