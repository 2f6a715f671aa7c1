-- Notify the idle dispatchers of a queue. For our own connections, in a transaction of its own AFTER the one that made
-- the job: a dispatcher first commits its idle marker and then claims, so either it sees the job or this statement sees
-- its marker. Without a marker there is no NOTIFY. The payloads:
--   QUEUE SECONDS  a job is due in so many seconds, at least 0.001
--   QUEUE 0        a job is ready (`ready`)
--   QUEUE          anything else may have changed: the dispatcher also asks when the next job is due
-- Where another transaction with the same payload holds its lock, it is about to commit, and its notification serves
-- us, too.
SELECT CASE WHEN n.delay > 0
            THEN trioboss.notify(:queue::text || ' ' || greatest(round(n.delay::numeric, 3), 0.001))
            WHEN pg_try_advisory_xact_lock(trioboss.lock_number('notify/' || n.payload, (SELECT seed FROM trioboss.lock_seed)))
            THEN trioboss.notify(n.payload) END,
       set_config('synchronous_commit', 'off', true)
FROM (SELECT coalesce(extract(epoch FROM :due::timestamptz - statement_timestamp()), :delay::float8, 0) AS delay,
             :queue || CASE WHEN :ready::boolean THEN ' 0' ELSE '' END AS payload) n
WHERE EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue);
