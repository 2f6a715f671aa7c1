-- Put one job into a queue; policy, order and backlog are settled here, in one round trip.
--
-- One row: the id, or null if the policy refused the job (the same id twice is refused like that, too).
-- No row: the queue or the dead letter queue does not exist, or the job lacks the key that its queue requires.
-- `unique_key`: as in live_job. `notify` is for the caller's transaction: the notification
-- to the workers goes out if and when it commits; the third column is the isolation level of that transaction.
WITH target AS MATERIALIZED (
    SELECT q.policy, trioboss.key_backlog(q.keyed, :singleton_key::text) AS backlog, t.sent_on,
           coalesce(:start_after::timestamptz, t.sent_on + coalesce(:delay::float8, 0) * interval '1 s') AS start_after,
           -- Exact commit order: senders of one key wait here until the other's transaction ends. The number in seq
           -- is taken afterwards, so the numbers of one key become visible in their order.
           CASE WHEN q.policy = 'key_strict_fifo' AND q.commit_order
                THEN pg_advisory_xact_lock(trioboss.key_lock(q.name, :singleton_key, (SELECT seed FROM trioboss.lock_seed)))
           END AS locked
    FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t
    WHERE q.name = :queue::text
      AND (q.policy <> 'key_strict_fifo' OR :singleton_key IS NOT NULL)
      AND (:options::jsonb ->> 'dead_letter' IS NULL
           OR EXISTS (SELECT FROM trioboss.queue d WHERE d.name = :options ->> 'dead_letter'))
), sent AS (
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
