-- Forget dead workers that have no jobs any more.
WITH gone AS (
    DELETE FROM trioboss.worker w
    WHERE w.id = ANY (:dead::uuid[]) AND NOT EXISTS (SELECT FROM trioboss.job j WHERE j.worker = w.id AND j.state = 'active')
    RETURNING id
)
DELETE FROM trioboss.sleeper WHERE worker IN (SELECT id FROM gone);
