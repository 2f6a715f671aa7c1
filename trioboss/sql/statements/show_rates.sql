-- How many jobs arrived, completed and failed in these queues since a time: for each its minutes and three counts, as
-- arrays. The columns have domains, and an array of a domain is a type that drivers do not decode.
SELECT s.queue, array_agg(s.minute::timestamptz ORDER BY s.minute), array_agg(s.arrived::int ORDER BY s.minute),
       array_agg(s.completed::int ORDER BY s.minute), array_agg(s.failed::int ORDER BY s.minute)
FROM unnest(:queues::text[]) AS w (queue)
JOIN trioboss.queue_sample s ON s.queue = w.queue AND s.minute >= :since::timestamptz
GROUP BY s.queue;
