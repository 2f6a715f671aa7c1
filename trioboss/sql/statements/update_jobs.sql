-- Change queued jobs: those in `ids`, or with `key` the newest (`newest`), the oldest or, without `limit`, all of that
-- key. A null parameter changes nothing; `with_data` tells null data from none. A job whose time is still to come waits
-- for it again, and one whose time has come for the next thing, as in promote_due.sql. A deferred job owns its key only
-- under strict FIFO, after an attempt. Options are merged with those that the job overrides. Returns the ids.
WITH terms AS MATERIALIZED (
    SELECT policy, t.now, coalesce(:start_after::timestamptz, t.now + :delay::float8 * interval '1 s') AS start_after
    FROM trioboss.queue, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now) t
    WHERE name = :queue::text
), picked AS MATERIALIZED (
    SELECT id FROM trioboss.live_job_common
    WHERE queue = :queue AND readiness < 'active' AND (id = ANY (:ids::uuid[]) OR key = :key::text)
    ORDER BY CASE WHEN :newest::boolean THEN -seq ELSE seq END
    LIMIT :limit::bigint
    FOR UPDATE
), changed AS (
    UPDATE trioboss.live_job_common j
    SET data = CASE WHEN :with_data::boolean THEN :data::jsonb ELSE j.data END,
        priority = coalesce(:priority::int, j.priority),
        rank = trioboss.backlog_rank(t.policy, coalesce(:priority, j.priority)),
        start_after = coalesce(t.start_after, j.start_after),
        readiness = CASE WHEN t.start_after IS NULL OR j.readiness = 'blocked'
                           OR (t.start_after <= t.now AND j.readiness <> 'deferred') THEN j.readiness
                         ELSE trioboss.queued_readiness(t.start_after, t.now, nullif(j.backlog, j.owner)) END,
        owner = CASE WHEN t.start_after <= t.now OR t.start_after IS NULL THEN j.owner
                     WHEN j.attempt > 0 THEN trioboss.kept_owner(t.policy, j.owner) END,
        options = CASE WHEN :options::jsonb IS NULL THEN j.options ELSE coalesce(j.options, '{}') || :options END
    FROM terms t
    WHERE j.queue = :queue AND j.id = ANY (ARRAY (SELECT id FROM picked)) AND j.readiness < 'active'
    RETURNING j.id, j.seq, j.priority, j.backlog, j.readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, :queue, backlog FROM changed WHERE readiness = 'waiting'
)
SELECT id FROM changed;
