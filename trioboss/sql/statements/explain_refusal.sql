-- After a send that gave no id: does the queue exist, what is its policy, does the dead letter queue exist,
-- and is a job of that id there already, live or ended?
SELECT q.policy,
       EXISTS (SELECT FROM trioboss.queue d WHERE d.name = :dead_letter::text) AS dead_letter_exists,
       EXISTS (SELECT FROM trioboss.live_job_common j WHERE j.queue = :queue AND j.id = :id::uuid)
           OR EXISTS (SELECT FROM trioboss.archive a WHERE a.queue = :queue AND a.id = :id) AS sent_before
FROM (SELECT) one LEFT JOIN trioboss.queue q ON q.name = :queue::text;
