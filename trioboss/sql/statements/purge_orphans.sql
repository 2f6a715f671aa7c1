-- Delete up to `limit` jobs whose queue is gone: their send was open while it was deleted. (One with a table of its own
-- took that along.) Goes from name to name: costs as much as there are queues, however many jobs. Returns how many.
WITH RECURSIVE present AS (
    (SELECT queue AS name FROM trioboss.live_job_common ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM trioboss.live_job_common j WHERE j.queue > p.name ORDER BY j.queue LIMIT 1)
    FROM present p
    WHERE p.name IS NOT NULL
), orphaned AS MATERIALIZED (
    SELECT p.name FROM present p WHERE NOT EXISTS (SELECT FROM trioboss.queue q WHERE q.name = p.name)
), gone AS (
    DELETE FROM trioboss.live_job_common
    WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM trioboss.live_job_common WHERE queue = ANY (ARRAY (SELECT name FROM orphaned)) LIMIT :limit::bigint
    ))
    RETURNING id
)
SELECT count(*) FROM gone;
