-- Turn the rows of a stage into jobs, and leave the checks of the backlogs that they join.
target AS MATERIALIZED (
    SELECT policy, keyed, coalesce(:now::timestamptz, statement_timestamp()) AS now
    FROM trioboss.queue WHERE name = :queue::text
), staged AS (
    SELECT s.*, t.policy, t.now, trioboss.key_backlog(t.keyed, s.singleton_key) AS backlog, coalesce(s.priority, 0) AS urgency,
           greatest(s.start_after, t.now, CASE WHEN :rate::float8 IS NOT NULL
                    THEN t.now + interval '1 s' * ((:ahead::bigint + s.position) / :rate) END) AS starts
    FROM trioboss.stage_row s, target t
    WHERE s.problem IS NULL
),
\ir fragments/staged_jobs.sql
