-- The jobs that a day of history still holds, in one row:
--   over         the queues whose jobs can be purged from this day. With a delete_after of less than a day: from when
--                the first job may have outlived it. With a longer one: only when all jobs have, because then the table
--                of the day can nearly always be dropped whole.
--   has_others   whether anything stays: the day has only just ended, or some jobs have not outlived their
--                delete_after, 0 being for ever
--   is_exported  whether the lakes that hold history have all of the day, attempts included
--   is_read      whether somebody is reading it
-- Goes from queue to queue by archive_id: its cost grows with the number of queues, not of jobs.
WITH RECURSIVE day AS MATERIALIZED (
    SELECT :day::date::timestamp AT TIME ZONE 'UTC' AS first, (:day::date + 1)::timestamp AT TIME ZONE 'UTC' AS after,
           coalesce(:now::timestamptz, now()) AS now
), present (queue) AS (
    (SELECT a.queue FROM trioboss.archive a
     WHERE a.completed_on >= (SELECT first FROM day) AND a.completed_on < (SELECT after FROM day) ORDER BY a.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT a.queue FROM trioboss.archive a
            WHERE a.completed_on >= (SELECT first FROM day) AND a.completed_on < (SELECT after FROM day) AND a.queue > p.queue
            ORDER BY a.queue LIMIT 1)
    FROM present p
    WHERE p.queue IS NOT NULL
), kept AS MATERIALIZED (                         -- the jobs of a queue that is gone are kept as long as by default
    SELECT p.queue, k.seconds > 0 AND d.now > k.seconds * interval '1 s'
                    + CASE WHEN k.seconds < 86400 THEN d.first ELSE d.after END AS over,
           k.seconds = 0 OR d.now <= d.after + k.seconds * interval '1 s' AS stays
    FROM day d, present p LEFT JOIN trioboss.queue q ON q.name = p.queue, LATERAL (SELECT coalesce(q.delete_after, 604800) AS seconds) k
    WHERE p.queue IS NOT NULL
)
SELECT array(SELECT queue FROM kept WHERE over) AS over,
       d.now <= d.after + interval '1 day' OR EXISTS (SELECT FROM kept WHERE stays) OR EXISTS (
           SELECT FROM trioboss.archive a, LATERAL (SELECT (a.options ->> 'delete_after')::float8 AS seconds) k
           WHERE a.options ? 'delete_after' AND a.completed_on >= d.first AND a.completed_on < d.after
             AND (k.seconds = 0 OR a.completed_on + k.seconds * interval '1 s' >= d.now)) AS has_others,
       NOT EXISTS (
           SELECT FROM trioboss.lake l
           WHERE l.holds AND l.exported <= greatest(
               (SELECT max(a.xid) FROM trioboss.archive a WHERE a.completed_on >= d.first AND a.completed_on < d.after),
               (SELECT max(a.xid) FROM trioboss.attempt a WHERE a.ended_on >= d.first AND a.ended_on < d.after))) AS is_exported,
       EXISTS (SELECT FROM trioboss.reader WHERE :day BETWEEN first_day AND last_day AND until > now()) AS is_read
FROM day d;
