-- Notify the idle dispatchers of a queue. For our own connections, in a transaction of its own AFTER the one that made
-- the job: a dispatcher first commits its idle marker and then claims, so either it sees the job or this statement sees
-- its marker. Without a marker there is no NOTIFY. The payload for a deferred job says in how many seconds it is due,
-- never 0; for a `ready` one it is 0. A payload without a number means anything else: the dispatcher then also finds
-- out what is due next. While the same payload is about to commit elsewhere, that notification serves us as well.
SELECT CASE WHEN n.delay > 0
            THEN trioboss.notify(:queue::text || ' ' || greatest(round(n.delay::numeric, 3), 0.001))
            WHEN pg_try_advisory_xact_lock(trioboss.lock_number('notify/' || n.payload, (SELECT seed FROM trioboss.lock_seed)))
            THEN trioboss.notify(n.payload) END,
       set_config('synchronous_commit', 'off', true)
FROM (SELECT coalesce(extract(epoch FROM :due::timestamptz - statement_timestamp()), :delay::float8, 0) AS delay,
             :queue || CASE WHEN :ready::boolean THEN ' 0' ELSE '' END AS payload) n
WHERE EXISTS (SELECT FROM trioboss.idle_dispatcher WHERE queue = :queue);
