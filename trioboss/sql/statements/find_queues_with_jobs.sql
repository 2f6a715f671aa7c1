-- The queues of a pattern that have queued jobs and are not paused: first the one whose ready job would be claimed
-- first if all were one queue, by priority and order of sending.
SELECT q.name
FROM trioboss.queue q
LEFT JOIN LATERAL (
    SELECT j.priority, j.seq FROM trioboss.live_job j
    WHERE j.queue = q.name AND j.readiness = 'ready'
    ORDER BY j.priority DESC, j.seq LIMIT 1
) first ON true
WHERE q.name LIKE :pattern::text AND NOT q.paused
  AND (first.seq IS NOT NULL
       OR EXISTS (SELECT FROM trioboss.live_job j WHERE j.queue = q.name AND j.readiness < 'active'))
ORDER BY first.priority DESC NULLS LAST, first.seq, q.name;
