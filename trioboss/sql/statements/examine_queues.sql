-- For each queue: its policy, whether it is paused, whether jobs wait in it and for how many seconds, how many workers
-- it has, how many of the first jobs have a key that only a policy could use (neither a throttle nor send_once, and not
-- that of a job that failed elsewhere), how many of those that are due are dead letters, which need no worker, and how
-- many keys are blocked. Reads at most 1000 jobs of a queue.
SELECT q.name, q.policy, q.paused, coalesce(f.due, 0) AS due, coalesce(f.age, 0)::float8 AS age,
       (SELECT count(*) FROM trioboss.worker w
        WHERE w.gone_since IS NULL AND
\ir fragments/is_served.sql queue=q.name pattern=w.queue
       ) AS workers,
       coalesce(f.keys, 0) AS keys, coalesce(f.dead_letters, 0) AS dead_letters,
       (SELECT count(*) FROM trioboss.live_job j
        WHERE j.queue = q.name AND
\ir fragments/blocks_key.sql
       ) AS blocked
FROM trioboss.queue q
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE w.start_after <= now()) AS due, count(w.key) FILTER (WHERE w.for_policy) AS keys,
           count(*) FILTER (WHERE w.start_after <= now() AND w.dead_letter) AS dead_letters,
           extract(epoch FROM now() - min(w.start_after) FILTER (WHERE w.start_after <= now())) AS age
    FROM (SELECT j.start_after, j.key, coalesce(j.notes ? 'source', false) AS dead_letter,
                 j.unique_key IS NULL AND (j.notes ?| ARRAY['singleton_on', 'source']) IS NOT TRUE AS for_policy
          FROM trioboss.live_job j
          WHERE j.queue = q.name AND j.readiness < 'active' LIMIT 1000) w
) f ON true
ORDER BY q.name;
