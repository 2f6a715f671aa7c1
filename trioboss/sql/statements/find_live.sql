-- Which of these jobs are still to be done. Returns their ids.
SELECT j.id
FROM unnest(:queues::text[], :ids::uuid[]) AS asked (name, id)
JOIN trioboss.job j ON j.name = asked.name AND j.id = asked.id;
