-- Keyed policies: what has just ended may have given others their turn. If something is left that was not claimed along
-- with it, wake the dispatchers that sleep: as in wake.sql, in a transaction of its own after that one.
SELECT CASE WHEN pg_try_advisory_xact_lock(hashtextextended('trioboss' || ' wake ' || :queue::text, 0))
            THEN pg_notify('trioboss', :queue) END,
       set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT FROM trioboss.sleeper WHERE name = :queue)
  AND (EXISTS (SELECT FROM trioboss.freed_key WHERE name = :queue)
       OR EXISTS (SELECT FROM trioboss.job_common WHERE name = :queue AND gate = 0 AND state < 'active'));
