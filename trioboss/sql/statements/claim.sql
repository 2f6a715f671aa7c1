-- Lease up to `limit` ready jobs of a queue to a worker, highest priority first, then in order of sending.
-- Two claims never get the same job, and never wait for each other. A claim reads at most `limit` entries of the index,
-- besides those that other sessions have locked and, beside an old snapshot, those claimed since (claim_onward.sql).
-- started_on is clock_timestamp(): the statement may have begun before the previous attempt ended.
-- `again`: a job was left that may be claimed at once: another session was just changing it, or the data of the others
-- was enough for one answer. find_next_due.sql finds jobs that wait for their time.
-- `async_commit`: if a crash of the server loses a claim, the job is still ready.
WITH
\ir fragments/lease_terms.sql
, picked AS MATERIALIZED (
    SELECT array_agg(row) AS jobs, array_agg(size) AS sizes, sum(size) AS size
    FROM (
        SELECT ctid AS row, trioboss.answer_size(size, data, options, notes) AS size FROM trioboss.live_job_common
        WHERE queue = :queue AND readiness = 'ready'
          AND priority >= coalesce(:min_priority::int, -2147483648)
          AND priority <= coalesce(:max_priority::int, 2147483647)
          AND (SELECT NOT paused FROM terms)
        ORDER BY priority DESC, seq
        LIMIT :limit::bigint
        FOR UPDATE SKIP LOCKED
    ) j
), found AS MATERIALIZED (
    SELECT coalesce(cardinality(jobs), 0) AS jobs, NULL AS more_after, NULL::bigint AS left_seq FROM picked
),
\ir fragments/lease_picked.sql
\ir fragments/claimed_jobs.sql
ORDER BY priority DESC NULLS FIRST, seq;
