-- Keyed queues: an ended job may let others run. If some are left that were not claimed along with its end, notify idle
-- dispatchers, as notify_idle.sql does, in a transaction of its own after that one.
SELECT CASE WHEN pg_try_advisory_xact_lock(trioboss.lock_number('notify/' || :queue::text, (SELECT seed FROM trioboss.lock_seed)))
            THEN trioboss.notify(:queue) END,
       set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue)
  AND (EXISTS (SELECT FROM trioboss.live_job_common WHERE queue = :queue AND readiness = 'ready')
       OR EXISTS (SELECT FROM trioboss.backlog_check WHERE queue = :queue));
