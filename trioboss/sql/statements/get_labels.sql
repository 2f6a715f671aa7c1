-- The apps that declare queues and schedules: queue, key (null for a queue), label (null if no app declares it).
SELECT name, NULL::text AS key, label FROM trioboss.queue
UNION ALL
SELECT queue, key, label FROM trioboss.schedule;
