-- claim.sql in order of sending alone, whatever the priorities. The ready index is ordered by priority first, so this
-- visits each priority in use once and takes the oldest of all: its work grows with the number of priorities.
-- It passes over at most 100 jobs of a priority that somebody else has locked.
WITH RECURSIVE
\ir fragments/lease_terms.sql
, level (priority) AS (
    (SELECT priority FROM trioboss.live_job_common
     WHERE queue = :queue AND readiness = 'ready' AND priority <= coalesce(:max_priority::int, 2147483647)
     ORDER BY priority DESC LIMIT 1)
    UNION ALL
    SELECT lower.priority
    FROM level, LATERAL (
        SELECT priority FROM trioboss.live_job_common
        WHERE queue = :queue AND readiness = 'ready' AND priority < level.priority
        ORDER BY priority DESC LIMIT 1
    ) lower
), oldest AS MATERIALIZED (
    SELECT j.row, j.seq
    FROM level, LATERAL (
        SELECT ctid AS row, seq FROM trioboss.live_job_common
        WHERE queue = :queue AND readiness = 'ready' AND priority = level.priority
        ORDER BY seq LIMIT :limit::bigint + 100
    ) j
    WHERE level.priority >= coalesce(:min_priority::int, -2147483648) AND (SELECT NOT paused FROM terms)
    ORDER BY j.seq
), picked AS MATERIALIZED (
    SELECT array_agg(row) AS jobs, array_agg(size) AS sizes, sum(size) AS size
    FROM (
        SELECT j.*
        FROM oldest o, LATERAL (
            SELECT ctid AS row, trioboss.answer_size(size, data, options, notes) AS size FROM trioboss.live_job_common
            WHERE ctid = o.row AND readiness = 'ready' FOR UPDATE SKIP LOCKED
        ) j
        LIMIT :limit
    ) j
), found AS MATERIALIZED (
    SELECT coalesce(cardinality(jobs), 0) AS jobs, NULL AS more_after, NULL::bigint AS left_seq FROM picked
),
\ir fragments/lease_picked.sql
\ir fragments/claimed_jobs.sql
ORDER BY seq NULLS FIRST;
