-- Give leases back: the jobs are queued again, keep their place and their retries; only the fence stays spent.
-- Fenced as in complete.sql. A job whose place as a retry is taken (see fail.sql) is left alone.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), lease AS MATERIALIZED (
    SELECT j.ctid AS row, j.*
    FROM trioboss.job_common j, LATERAL (SELECT :leases::jsonb -> j.id::text AS lease OFFSET 0) l
    WHERE j.name = :queue::text AND j.id = ANY (:ids::uuid[]) AND j.state = 'active'
      AND (l.lease ->> 0 IS NULL
           OR (j.attempt = (l.lease ->> 0)::int AND j.started_on = (l.lease ->> 1)::timestamptz))
      AND NOT (j.policy = 'stately' AND (
          SELECT true FROM trioboss.job_common r
          WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(j.singleton_key, '')
            AND r.state = 'retry' AND r.policy = 'stately' AND r.state <= 'active' LIMIT 1) IS NOT NULL)
      AND (j.unique_until IS DISTINCT FROM 'started' OR (
          SELECT true FROM trioboss.job_common r
          WHERE r.name = :queue AND coalesce(r.singleton_key, '') = coalesce(j.singleton_key, '')
            AND r.unique_until = 'started' AND r.state < 'active' LIMIT 1) IS NULL)
    FOR UPDATE OF j
), remembered AS (
    INSERT INTO trioboss.attempt (job_id, name, attempt, worker, started_on, ended_on, outcome, singleton_key)
    SELECT id, name, attempt, worker, started_on, (SELECT now FROM clock), 'released', singleton_key FROM lease
)
UPDATE trioboss.job_common
SET state = 'retry', worker = NULL, heartbeat_on = NULL,
    gate = CASE WHEN policy IN ('singleton', 'stately') THEN 1 ELSE 0 END
WHERE ctid = ANY (ARRAY (SELECT row FROM lease))
RETURNING id;
