-- After a statement over many jobs was rejected: the jobs of a queue with values that no version of this schema
-- accepts, up to a thousand. They fail for good as in quarantine.sql, whatever they waited for. A job of strict FIFO
-- that owns its key blocks it. One that waits for its key, or for its time, leaves its backlog instead: a key has one
-- owner, and the jobs that go before this one must run. A job that is being changed is passed over. Returns ids and
-- what is wrong with each.
WITH terms AS MATERIALIZED (
    SELECT policy, coalesce(:now::timestamptz, statement_timestamp()) AS now FROM trioboss.queue WHERE name = :queue::text
), unsound AS MATERIALIZED (
    SELECT j.id, found.problem
    FROM trioboss.live_job_common j, LATERAL (
        SELECT trioboss.find_problem(j.options, j.notes, j.data, j.started_on, j.heartbeat, j.heartbeat_on, j.expires_on) AS problem
        OFFSET 0  -- once for each job: to read a document of a billion bytes takes a second
    ) found
    WHERE j.queue = :queue AND j.readiness < 'ended' AND found.problem IS NOT NULL
      AND (num_nonnulls(j.options, j.notes, j.expires_on, j.heartbeat) > 0 OR pg_column_size(j.data) > 100)
    LIMIT 1000
), lease AS MATERIALIZED (
    SELECT * FROM trioboss.live_job_common WHERE queue = :queue AND id = ANY (ARRAY (SELECT id FROM unsound))
    FOR UPDATE SKIP LOCKED
),
\ir fragments/quarantine_leases.sql
SELECT u.id, u.problem FROM unsound u JOIN lease l USING (id);
