-- Turn staged rows into jobs, except those that are refused: by the queue's policy, or because their id was sent
-- before. Order is the order of the load, except where keys are unique: there it is the order of keys, so that two
-- loads never wait for each other in a cycle. Returns how many there are now, and their ids if asked for.
WITH target AS MATERIALIZED (
    SELECT q.policy, q.keyed, coalesce(:now::timestamptz, statement_timestamp()) AS now,
           -- Exact commit order, as in send.sql: the locks of all keys, in one order.
           CASE WHEN q.policy = 'key_strict_fifo' AND q.commit_order THEN (
               SELECT count(pg_advisory_xact_lock(l.lock))
               FROM (SELECT DISTINCT trioboss.key_lock(q.name, s.singleton_key, (SELECT seed FROM trioboss.lock_seed)) AS lock
                     FROM trioboss.staging s WHERE s.load = :load::uuid ORDER BY 1) l) END AS locked
    FROM trioboss.queue q WHERE q.name = :queue::text
), staged AS (
    SELECT s.*, t.policy, t.now, trioboss.key_backlog(t.keyed, s.singleton_key) AS backlog, coalesce(s.priority, 0) AS urgency,
           coalesce(s.start_after, t.now + coalesce(s.delay, 0) * interval '1 s') AS starts
    FROM trioboss.staging s, target t
    WHERE s.load = :load
),
\ir fragments/staged_jobs.sql
    ORDER BY CASE WHEN policy IN ('short', 'stately', 'exclusive') THEN singleton_key END, position
    ON CONFLICT DO NOTHING
    RETURNING id, seq, readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT min(seq), priority, :queue, backlog
    FROM (
        -- A role that only sends may not read the backlogs of jobs, so they come from the stage. Joined by grouping:
        -- the planner cannot estimate how many rows there are, and would compare each with each.
        SELECT max(seq) AS seq, max(priority) AS priority, max(backlog) AS backlog
        FROM (SELECT id, seq, NULL::int AS priority, NULL::text AS backlog FROM released WHERE readiness = 'waiting'
              UNION ALL
              SELECT id, NULL, coalesce(priority, 0), trioboss.key_backlog(true, singleton_key) FROM trioboss.staging
              WHERE load = :load AND (SELECT keyed FROM target)) part
        GROUP BY id HAVING max(seq) IS NOT NULL
    ) job
    GROUP BY backlog, priority
), emptied AS (
    DELETE FROM trioboss.staging WHERE load = :load
)
SELECT count(*), array_agg(id) FILTER (WHERE :keep_ids::boolean) FROM released;
