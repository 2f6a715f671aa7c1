-- Lease up to `limit` deferred jobs of a queue whose time has not come, the earliest first. In a keyed queue only the
-- first deferred job of each key, and only if it owns the key already, or the key has neither an owner nor a job in its
-- backlog: for such queues it runs after admit.sql, under the same lock. Reads no more than ten thousand jobs. Rows as
-- in claim.sql.
WITH
\ir fragments/lease_terms.sql
, early AS MATERIALIZED (
    SELECT ctid AS row, coalesce(backlog, id::text) AS backlog, start_after, rank, seq, owner IS NOT NULL AS owns
    FROM trioboss.live_job_common
    WHERE queue = :queue AND readiness = 'deferred'
    ORDER BY start_after
    LIMIT (SELECT CASE WHEN keyed THEN 10000 ELSE :limit::bigint + 1000 END FROM trioboss.queue WHERE name = :queue)
), first AS MATERIALIZED (
    SELECT DISTINCT ON (backlog) * FROM early ORDER BY backlog, owns DESC, rank, seq
), picked AS MATERIALIZED (
    SELECT array_agg(row) AS jobs, array_agg(size) AS sizes, sum(size) AS size
    FROM (
        SELECT j.*
        FROM (SELECT * FROM first ORDER BY start_after) f, LATERAL (
            SELECT ctid AS row, trioboss.answer_size(size, data, options, notes) AS size FROM trioboss.live_job_common
            WHERE ctid = f.row AND readiness = 'deferred'
              AND priority >= coalesce(:min_priority::int, -2147483648) AND priority <= coalesce(:max_priority::int, 2147483647)
            FOR UPDATE SKIP LOCKED
        ) j
        WHERE (SELECT NOT paused FROM terms) AND (f.owns OR (
\ir fragments/key_is_free.sql jobs=live_job_common queue=:queue backlog=f.backlog
            AND NOT EXISTS (SELECT FROM trioboss.live_job_common
                            WHERE queue = :queue AND backlog = f.backlog AND readiness = 'waiting')))
        LIMIT :limit
    ) j
), found AS MATERIALIZED (
    SELECT coalesce(cardinality(jobs), 0) AS jobs, NULL AS more_after, NULL::bigint AS left_seq FROM picked
),
\ir fragments/lease_picked.sql
\ir fragments/claimed_jobs.sql
ORDER BY start_after NULLS FIRST, seq;
