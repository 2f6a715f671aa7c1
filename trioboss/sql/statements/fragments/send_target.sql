-- The queue of a job that is sent, as the job needs it; no row if there is none, or it needs a key, or the dead letter
-- queue of the job is not there.
target AS MATERIALIZED (
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
)
