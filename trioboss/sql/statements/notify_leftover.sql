-- After jobs of a keyed queue have ended: if jobs of the queue can run now, and no claim has taken them, notify its
-- idle dispatchers with the payload QUEUE, by the rules of notify_idle.sql.
SELECT CASE WHEN pg_try_advisory_xact_lock(trioboss.lock_number('notify/' || :queue::text, (SELECT seed FROM trioboss.lock_seed)))
            THEN trioboss.notify(:queue) END,
       set_config('synchronous_commit', 'off', true)
WHERE EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue)
  AND (EXISTS (SELECT FROM trioboss.live_job_common WHERE queue = :queue AND readiness = 'ready')
       OR EXISTS (SELECT FROM trioboss.backlog_check WHERE queue = :queue));
