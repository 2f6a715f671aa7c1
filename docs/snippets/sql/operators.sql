-- begin live
SELECT name, state, count(*) FROM trioboss.job GROUP BY name, state ORDER BY name, state;
-- end live

-- begin oldest
SELECT name, count(*) AS due, now() - min(start_after) AS oldest
FROM trioboss.job
WHERE state IN ('created', 'retry') AND start_after <= now() AND readiness <> 'waiting'
GROUP BY name ORDER BY oldest DESC;
-- end oldest

-- begin blocked
SELECT b.name, b.singleton_key, b.id, b.completed_on, b.output ->> 'message' AS error,
       (SELECT count(*) FROM trioboss.job w
        WHERE w.name = b.name AND w.singleton_key = b.singleton_key AND w.readiness = 'waiting') AS waiting
FROM trioboss.job b
WHERE b.state = 'failed'
ORDER BY b.completed_on;
-- end blocked

-- begin backlog
SELECT id, state, readiness, start_after
FROM trioboss.job
WHERE name = 'moves' AND singleton_key = 'ann'
ORDER BY seq;
-- end backlog

-- begin attempts
SELECT attempt, outcome, started_on, ended_on, worker, error ->> 'message' AS error
FROM trioboss.attempt
WHERE queue = 'moves' AND job_id = '0190a5c4-0000-7000-8000-000000000001'
ORDER BY ended_on;
-- end attempts

-- begin failures
SELECT name, output ->> 'name' AS error, count(*), max(completed_on) AS latest
FROM trioboss.all_jobs
WHERE state = 'failed' AND completed_on > now() - interval '1 day'
GROUP BY name, output ->> 'name' ORDER BY count(*) DESC;
-- end failures

-- begin running
SELECT name, id, attempt, now() - started_on AS running_for, worker, progress
FROM trioboss.job
WHERE state = 'active'
ORDER BY started_on LIMIT 20;
-- end running
