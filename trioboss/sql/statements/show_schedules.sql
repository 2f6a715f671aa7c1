-- Schedules by queue and key, each with its last ticks of the ledger that were due before a time: when they were due,
-- when they were fired, and their jobs. Either one schedule (`queue` and `key`), or a page of those whose queue or key
-- contains `text`, after one of them (`after_queue`, `after_key`). A page has no data, which can be large and is read
-- once a second.
SELECT s.queue, s.key, s.cron, s.timezone, s.missed,
       CASE WHEN :queue::text IS NOT NULL THEN trioboss.readable(s.data) END AS data, s.options, s.created_on, s.updated_on, s.paused,
       t.due, t.fired, t.jobs
FROM (
    SELECT * FROM trioboss.schedule s
    WHERE (:queue::text IS NULL OR (s.queue = :queue AND s.key = :key::text))
      AND (:text::text IS NULL OR strpos(lower(s.queue), lower(:text)) > 0 OR strpos(lower(s.key), lower(:text)) > 0)
      AND (:after_queue::text IS NULL OR (s.queue, s.key) > (:after_queue, coalesce(:after_key::text, '')))
    ORDER BY s.queue, s.key LIMIT :limit::bigint
) s
CROSS JOIN LATERAL (
    SELECT array_agg(t.due::timestamptz ORDER BY t.due DESC) AS due, array_agg(t.fired_on::timestamptz ORDER BY t.due DESC) AS fired,
           array_agg(t.job_id ORDER BY t.due DESC) AS jobs
    FROM (SELECT * FROM trioboss.tick t
          WHERE t.queue = s.queue AND t.key = s.key AND t.due < coalesce(:due_before::timestamptz, 'infinity')
          ORDER BY t.due DESC LIMIT :ticks::bigint) t
) t
ORDER BY s.queue, s.key;
