-- Retention of small tables: throttle slots that are over, old ticks (the last of each schedule stays), checks of
-- deleted queues (their jobs leave some when they are deleted) and of queues without keys, idle markers and completion
-- waiters of workers and callers that are gone, readers of history that are done, samples older than a day, warnings
-- older than a week, and audit rows older than 90 days. Makes the tables of coming days.
WITH RECURSIVE checked (queue) AS (               -- from queue to queue, however many checks
    (SELECT queue FROM trioboss.backlog_check ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT b.queue FROM trioboss.backlog_check b WHERE b.queue > c.queue ORDER BY b.queue LIMIT 1)
    FROM checked c
    WHERE c.queue IS NOT NULL
), checks AS (
    DELETE FROM trioboss.backlog_check WHERE queue = ANY (ARRAY (
        SELECT c.queue FROM checked c WHERE NOT EXISTS (SELECT FROM trioboss.queue q WHERE q.name = c.queue AND q.keyed)))
), slots AS (
    DELETE FROM trioboss.throttle WHERE until < now() - interval '1 hour'
), ticks AS (
    DELETE FROM trioboss.tick t
    WHERE t.due < now() - interval '7 days'
      AND EXISTS (SELECT FROM trioboss.tick n WHERE n.queue = t.queue AND n.key = t.key AND n.due > t.due)
), markers AS (
    DELETE FROM trioboss.idle_dispatcher i WHERE NOT EXISTS (SELECT FROM trioboss.worker w WHERE w.id = i.worker)
), waiters AS (
    DELETE FROM trioboss.completion_waiter WHERE until < now()
), readers AS (
    DELETE FROM trioboss.reader WHERE until < now() - interval '1 day'
), samples AS (
    DELETE FROM trioboss.queue_sample WHERE minute < now() - interval '25 hours'
), warnings AS (
    DELETE FROM trioboss.warning WHERE last_on < now() - interval '7 days'
), audits AS (
    DELETE FROM trioboss.audit WHERE at < now() - interval '90 days'
)
SELECT trioboss.add_days((now() AT TIME ZONE 'UTC')::date, 7);
