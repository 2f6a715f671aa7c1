-- Put one job into a queue, at most one in each slot of `singleton_seconds` for each key. Slots are counted from
-- the epoch. With `singleton_next_slot` a job whose slot is taken gets the next one, and starts when that begins.
--
-- Rows as in send.sql, with the slot that was taken, if any. A slot is taken before the policy is asked;
-- give_back_slot.sql returns it if that refused.
WITH fit AS MATERIALIZED (
    SELECT q.*, t.sent_on, t.slot, t.length,
           coalesce(:start_after::timestamptz, t.sent_on + coalesce(:delay::float8, 0) * interval '1 s') AS start_after,
           CASE WHEN q.policy = 'key_strict_fifo' AND q.commit_order
                THEN pg_advisory_xact_lock(trioboss.turn(q.name, :singleton_key::text)) END AS my_turn
    FROM trioboss.queue q, (
        SELECT n.sent_on, :singleton_seconds::float8 * interval '1 s' AS length,
               to_timestamp(:singleton_seconds * floor(extract(epoch FROM n.sent_on)::float8 / :singleton_seconds)) AS slot
        FROM (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS sent_on) n
    ) t
    WHERE q.name = :queue::text
      AND (q.policy <> 'key_strict_fifo' OR :singleton_key IS NOT NULL)
      AND (:dead_letter::text IS NULL OR EXISTS (SELECT FROM trioboss.queue d WHERE d.name = :dead_letter))
), this_slot AS (
    INSERT INTO trioboss.throttle (name, key, slot, until, job_id)
    SELECT name, coalesce(:singleton_key, ''), slot, slot + length, :id::uuid FROM fit
    ON CONFLICT DO NOTHING RETURNING slot
), next_slot AS (
    INSERT INTO trioboss.throttle (name, key, slot, until, job_id)
    SELECT name, coalesce(:singleton_key, ''), slot + length, slot + 2 * length, :id
    FROM fit WHERE :singleton_next_slot::boolean AND NOT EXISTS (SELECT FROM this_slot)
    ON CONFLICT DO NOTHING RETURNING slot
), sent AS (
    INSERT INTO trioboss.job_common (
        id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
        start_after, singleton_key, singleton_on, unique_until, expire_in, heartbeat, auto_heartbeat,
        max_lease_extensions, created_on, keep_until, delete_after, dead_letter, policy, gate)
    SELECT :id, f.name, coalesce(:priority::int, 0), :data::jsonb,
           coalesce(:retry_limit::int, f.retry_limit), coalesce(:retry_delay::float8, f.retry_delay),
           coalesce(:retry_backoff::boolean, f.retry_backoff), coalesce(:retry_delay_max::float8, f.retry_delay_max),
           coalesce(:retry_jitter::float8, f.retry_jitter),
           coalesce(:retry_window::float8 * interval '1 s', f.retry_window),
           s.start_after, :singleton_key, s.slot AT TIME ZONE 'UTC', :unique_until::text,
           coalesce(:expire_in::float8 * interval '1 s', f.expire_in),
           coalesce(:heartbeat::float8 * interval '1 s', f.heartbeat), coalesce(:auto_heartbeat::boolean, f.auto_heartbeat),
           coalesce(:max_lease_extensions::int, f.max_lease_extensions), f.sent_on,
           greatest(s.start_after, f.sent_on) + coalesce(:retention::float8 * interval '1 s', f.retention),
           coalesce(:delete_after::float8 * interval '1 s', f.delete_after),
           coalesce(:dead_letter, f.dead_letter), f.policy,
           CASE WHEN s.start_after > f.sent_on THEN 3 WHEN f.keyed THEN 1 ELSE 0 END
    FROM fit f, LATERAL (
        SELECT slot, f.start_after FROM this_slot
        UNION ALL
        SELECT slot, greatest(f.start_after, slot) FROM next_slot
    ) s
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT s.id, CASE WHEN s.id IS NOT NULL AND :ring::boolean THEN pg_notify('trioboss', :queue) END,
       (SELECT slot FROM this_slot UNION ALL SELECT slot FROM next_slot)
FROM fit LEFT JOIN sent s ON true;
