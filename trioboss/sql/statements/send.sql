-- Put one job into a queue; defaults, policy and order are settled here, in one round trip.
--
-- One row: the id, or null where the policy refused the job (the same id twice is refused like that, too).
-- No row: the queue or the dead letter queue does not exist, or the job lacks the key its queue requires.
-- `ring` is for the caller's transaction: the word to the workers goes out if and when it commits.
WITH fit AS MATERIALIZED (
    SELECT q.*, t.sent_on,
           coalesce(:start_after::timestamptz, t.sent_on + coalesce(:delay::float8, 0) * interval '1 s') AS start_after,
           -- Exact commit order: who sends to the same key waits here until our transaction ends. The number
           -- in seq is taken afterwards, so the numbers of one key become visible in their order.
           CASE WHEN q.policy = 'key_strict_fifo' AND q.commit_order
                THEN pg_advisory_xact_lock(trioboss.turn(q.name, :singleton_key::text)) END AS my_turn
    FROM trioboss.queue q, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) t
    WHERE q.name = :queue::text
      AND (q.policy <> 'key_strict_fifo' OR :singleton_key IS NOT NULL)
      AND (:dead_letter::text IS NULL OR EXISTS (SELECT FROM trioboss.queue d WHERE d.name = :dead_letter))
), sent AS (
    INSERT INTO trioboss.job_common (
        id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
        start_after, singleton_key, unique_until, expire_in, heartbeat, auto_heartbeat, max_lease_extensions,
        created_on, keep_until, delete_after, dead_letter, policy, gate)
    SELECT :id::uuid, f.name, coalesce(:priority::int, 0), :data::jsonb,
           coalesce(:retry_limit::int, f.retry_limit), coalesce(:retry_delay::float8, f.retry_delay),
           coalesce(:retry_backoff::boolean, f.retry_backoff), coalesce(:retry_delay_max::float8, f.retry_delay_max),
           coalesce(:retry_jitter::float8, f.retry_jitter),
           coalesce(:retry_window::float8 * interval '1 s', f.retry_window),
           f.start_after, :singleton_key, :unique_until::text,
           coalesce(:expire_in::float8 * interval '1 s', f.expire_in),
           coalesce(:heartbeat::float8 * interval '1 s', f.heartbeat), coalesce(:auto_heartbeat::boolean, f.auto_heartbeat),
           coalesce(:max_lease_extensions::int, f.max_lease_extensions), f.sent_on,
           greatest(f.start_after, f.sent_on) + coalesce(:retention::float8 * interval '1 s', f.retention),
           coalesce(:delete_after::float8 * interval '1 s', f.delete_after),
           coalesce(:dead_letter, f.dead_letter), f.policy,
           CASE WHEN f.start_after > f.sent_on THEN 3 WHEN f.keyed THEN 1 ELSE 0 END
    FROM fit f
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT s.id, CASE WHEN s.id IS NOT NULL AND :ring::boolean THEN pg_notify('trioboss', :queue) END
FROM fit LEFT JOIN sent s ON true;
