-- Forget dead workers that have no jobs any more.
WITH gone AS (
    DELETE FROM trioboss.worker w
    WHERE w.id = ANY (:dead::uuid[])
      AND NOT EXISTS (SELECT FROM trioboss.live_job j WHERE j.worker = w.id AND j.readiness = 'active')
    RETURNING id
)
DELETE FROM trioboss.idle_dispatcher WHERE worker IN (SELECT id FROM gone);
