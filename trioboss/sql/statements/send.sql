-- Put one job into a queue; policy, order and backlog are decided here, in one round trip.
--
-- One row: the id, or null if the policy refused the job (the same id twice is refused like that, too).
-- No row: the queue or the dead letter queue does not exist, or the job lacks the key that its queue requires.
-- `unique_key`: as in live_job. `notify` is for the caller's transaction: the notification to the workers goes out if
-- and when it commits; the third column is the isolation level of that transaction.
WITH
\ir fragments/send_target.sql
, sent AS (
    INSERT INTO trioboss.live_job_common (
        id, queue, priority, rank, created_on, start_after, key, backlog, slot, unique_key, readiness, options, data)
    SELECT :id::uuid, :queue, coalesce(:priority::int, 0), trioboss.backlog_rank(t.policy, coalesce(:priority, 0)),
           t.sent_on, t.start_after, :singleton_key, t.backlog, trioboss.queued_slot(t.policy, :singleton_key, 0),
           :unique_key::text, trioboss.queued_readiness(t.start_after, t.sent_on, t.backlog), :options, :data::jsonb
    FROM target t
    ON CONFLICT DO NOTHING
    RETURNING id, seq, readiness
), joined AS (
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT s.seq, coalesce(:priority, 0), :queue, t.backlog FROM sent s, target t WHERE s.readiness = 'waiting'
)
SELECT s.id, CASE WHEN s.id IS NOT NULL AND :notify::boolean THEN trioboss.notify(:queue) END,
       CASE WHEN :notify THEN current_setting('transaction_isolation') END
FROM target LEFT JOIN sent s ON true;
