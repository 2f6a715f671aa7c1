-- Which of these jobs are still to be done. Returns their ids.
SELECT j.id
FROM unnest(:queues::text[], :ids::uuid[]) AS asked (queue, id)
JOIN trioboss.live_job j ON j.queue = asked.queue AND j.id = asked.id;
