-- Give leases back: the jobs are queued again, keep their place and their retries; only the fence stays spent. Their
-- retention starts anew, because it is about time spent waiting.
-- Fenced and locked as in fail.sql. A job whose place as a retry is taken (see there) is left alone.
-- Returns the ids that were released.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), lease AS MATERIALIZED (
    SELECT j.*
    FROM trioboss.job_common j, LATERAL (SELECT :leases::jsonb -> j.id::text AS lease OFFSET 0) l
    WHERE j.name = :queue::text AND j.id = ANY (:ids::uuid[]) AND j.state = 'active'
      AND (l.lease ->> 0 IS NULL
           OR (j.attempt = (l.lease ->> 0)::int AND j.started_on = (l.lease ->> 1)::timestamptz))
    FOR UPDATE OF j
), fitting AS MATERIALIZED (
    SELECT o.*
    FROM (
        SELECT *, row_number() OVER (PARTITION BY unique_until, coalesce(singleton_key, '') ORDER BY seq) AS turn FROM lease
    ) o
    WHERE NOT (o.policy = 'stately' AND (
          SELECT true FROM trioboss.job_common r
          WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(o.singleton_key, '')
            AND r.state = 'retry' AND r.policy = 'stately' AND r.state <= 'active' LIMIT 1) IS NOT NULL)
      AND (o.unique_until IS DISTINCT FROM 'started' OR (o.turn = 1 AND (
          SELECT true FROM trioboss.job_common r
          WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(o.singleton_key, '')
            AND r.unique_until = 'started' AND r.state < 'active' LIMIT 1) IS NULL))
), remembered AS (
    INSERT INTO trioboss.attempt (job_id, name, attempt, worker, started_on, ended_on, outcome, singleton_key)
    SELECT id, name, attempt, worker, started_on, (SELECT now FROM clock), 'released', singleton_key FROM fitting
)
UPDATE trioboss.job_common
SET state = 'retry', worker = NULL, heartbeat_on = NULL, start_after = (SELECT now FROM clock),
    keep_until = (SELECT now FROM clock) + (keep_until - greatest(start_after, created_on)),
    gate = CASE WHEN policy IN ('singleton', 'stately') THEN 1 ELSE 0 END
WHERE name = :queue AND id = ANY (ARRAY (SELECT id FROM fitting))
RETURNING id;
