-- How many jobs arrived, completed and failed in these queues since a time: for each its minutes and three counts, as arrays.
SELECT s.queue, array_agg(s.minute ORDER BY s.minute), array_agg(s.arrived ORDER BY s.minute),
       array_agg(s.completed ORDER BY s.minute), array_agg(s.failed ORDER BY s.minute)
FROM unnest(:queues::text[]) AS w (queue)
JOIN trioboss.queue_sample s ON s.queue = w.queue AND s.minute >= :since::timestamptz
GROUP BY s.queue;
