-- Send queued jobs of a dead letter queue back to the queues in which they failed, or to :to, oldest first: new jobs
-- with the data, the priority and the key, and with the options that their queue has now. Each has the id of the job
-- that failed in its notes, so that an erasure of that job finds it. Jobs whose queue is gone, or needs a key that they
-- do not have, stay, and so do jobs that a policy refuses, and duplicates, unless :force: copies of jobs that block
-- their key, were retried, or have completed since. Goes on after the id `after`, up to `last`: ids are in order, and
-- indexed. With `committed` only jobs that were there when it was taken (show_committed.sql). With :ids only those;
-- `after` and `last` are to be around them, so that few others are read. Returns for each job: its id, its queue,
-- whether it was sent, whether it is a duplicate.
WITH picked AS MATERIALIZED (
    SELECT j.id, j.priority, j.data, j.key, coalesce(n.source ->> 'id', j.id::text) AS source_id,
           q.name AS destination, trioboss.make_id() AS new_id, s.duplicate,
           q.name IS NOT NULL AND (q.policy <> 'key_strict_fifo' OR j.key IS NOT NULL) AND NOT s.duplicate AS routable
    FROM trioboss.live_job_common j
    CROSS JOIN LATERAL jsonb_to_record(j.notes) AS n (source jsonb)
    LEFT JOIN trioboss.queue q ON q.name = coalesce(:to::text, n.source ->> 'queue')
    CROSS JOIN LATERAL (
\ir fragments/is_duplicate.sql
    ) s
    WHERE j.queue = :queue::text AND j.readiness < 'active'
      AND j.id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000')
      AND j.id <= coalesce(:last::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      AND (:source::text IS NULL OR n.source ->> 'queue' = :source)
      AND
\ir fragments/was_committed.sql
      AND (:ids::uuid[] IS NULL OR j.id = ANY (:ids))
    ORDER BY j.id
    LIMIT :limit::integer
    FOR UPDATE OF j SKIP LOCKED
), sent AS (
    INSERT INTO trioboss.live_job (id, queue, priority, data, key, notes)
    SELECT new_id, destination, priority, data, key, jsonb_build_object('redriven', source_id) FROM picked WHERE routable ORDER BY id
    ON CONFLICT DO NOTHING
    RETURNING id
), moved AS (
    DELETE FROM trioboss.live_job_common
    WHERE queue = :queue AND id = ANY (ARRAY (SELECT id FROM picked WHERE new_id IN (SELECT id FROM sent)))
)
SELECT id, CASE WHEN routable THEN destination END, new_id IN (SELECT id FROM sent), duplicate FROM picked ORDER BY id;
