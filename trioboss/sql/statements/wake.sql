-- Wake the dispatchers of a queue that sleep. For our own connections, in a transaction of its own AFTER the one
-- that made the job: a dispatcher first commits its mark in sleeper and then looks, so either it sees the job or
-- this statement sees its mark. Nobody asleep: no NOTIFY. The word for a deferred job says in how many seconds it is
-- due, never 0; for one that is `ready` it is 0. A word without a number is for everything else: whoever hears it
-- looks what is due, too. While the same word is on its way to commit, it serves us as well.
SELECT CASE WHEN w.delay > 0
            THEN pg_notify('trioboss', :queue::text || ' ' || greatest(round(w.delay::numeric, 3), 0.001))
            WHEN pg_try_advisory_xact_lock(hashtextextended('trioboss' || ' wake ' || w.word, 0))
            THEN pg_notify('trioboss', w.word) END,
       set_config('synchronous_commit', 'off', true)
FROM (SELECT coalesce(extract(epoch FROM :due::timestamptz - statement_timestamp()), :delay::float8, 0) AS delay,
             :queue || CASE WHEN :ready::boolean THEN ' 0' ELSE '' END AS word) w
WHERE EXISTS (SELECT FROM trioboss.sleeper WHERE name = :queue);
