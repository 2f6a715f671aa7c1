-- The samples of one queue, minute by minute from `since` on and before `until`, and the last one before that, which
-- says how many jobs there were at the beginning.
SELECT s.minute, s.deferred, s.waiting, s.ready, s.active, s.arrived, s.completed, s.failed, s.waits, s.runs
FROM trioboss.queue_sample s
WHERE s.queue = :queue::text AND s.minute >= :since::timestamptz AND s.minute < :until::timestamptz
UNION ALL
(SELECT s.minute, s.deferred, s.waiting, s.ready, s.active, 0, 0, 0, NULL, NULL
 FROM trioboss.queue_sample s
 WHERE s.queue = :queue AND s.minute < :since AND s.active IS NOT NULL
 ORDER BY s.minute DESC LIMIT 1)
ORDER BY minute;
