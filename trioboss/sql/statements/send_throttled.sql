-- Put one job into a queue, at most one in each slot of `singleton_seconds` for each key. Slots are counted from
-- the epoch. With `singleton_next_slot` a job whose slot is taken gets the next one, and starts when that begins.
--
-- Rows as in send.sql, with the slot that was taken, if any. A slot is taken before the policy decides;
-- return_throttle_slot.sql returns it if the policy refused the job.
WITH
\ir fragments/send_target.sql
, taken AS MATERIALIZED (
    SELECT trioboss.take_throttle_slot(:queue, coalesce(:singleton_key, ''), :singleton_seconds::float8,
                                       :singleton_next_slot::boolean, sent_on, :id::uuid) AS slot
    FROM target
), sent AS (
    INSERT INTO trioboss.live_job_common (
        id, queue, priority, rank, created_on, start_after, key, backlog, slot, unique_key, readiness, options, data, notes)
    SELECT :id, :queue, coalesce(:priority::int, 0), trioboss.backlog_rank(t.policy, coalesce(:priority, 0)),
           t.sent_on, s.start_after, :singleton_key, t.backlog, trioboss.queued_slot(t.policy, :singleton_key, 0),
           :unique_key::text, trioboss.queued_readiness(s.start_after, t.sent_on, t.backlog), :options, :data::jsonb,
           jsonb_build_object('singleton_on', s.slot)
    FROM target t, LATERAL (
        -- A slot later than this moment is the next one: the job starts when it begins.
        SELECT slot, greatest(t.start_after, CASE WHEN slot > t.sent_on THEN slot END) AS start_after FROM taken WHERE slot IS NOT NULL
    ) s
    ON CONFLICT DO NOTHING
    RETURNING id, seq, readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT s.seq, coalesce(:priority, 0), :queue, t.backlog FROM sent s, target t WHERE s.readiness = 'waiting'
)
SELECT s.id, CASE WHEN s.id IS NOT NULL AND :notify::boolean THEN trioboss.notify(:queue) END,
       CASE WHEN :notify THEN current_setting('transaction_isolation') END, k.slot
FROM taken k LEFT JOIN sent s ON true;
