-- claim.sql for a dispatcher whose claims are slow: lease up to `limit` ready jobs of one priority that were sent after
-- the job that it claimed last. As long as any transaction has an old snapshot, the index keeps the entries of all jobs
-- that were claimed since, and a claim from the beginning visits each of them; this one begins behind them. A job that
-- became ready with a lower number, or that has another priority, is left to the next claim from the beginning.
WITH
\ir fragments/lease_terms.sql
, picked AS MATERIALIZED (
    SELECT array_agg(row) AS jobs, array_agg(size) AS sizes, sum(size) AS size
    FROM (
        SELECT ctid AS row, trioboss.answer_size(size, data, options, notes) AS size FROM trioboss.live_job_common
        WHERE queue = :queue AND readiness = 'ready' AND priority = :after_priority::int AND seq > :after_seq::bigint
          AND (SELECT NOT paused FROM terms)
        ORDER BY seq
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    ) j
), found AS MATERIALIZED (
    SELECT coalesce(cardinality(jobs), 0) AS jobs, NULL AS more_after, NULL::bigint AS left_seq FROM picked
),
\ir fragments/lease_picked.sql
\ir fragments/claimed_jobs.sql
ORDER BY seq NULLS FIRST;
