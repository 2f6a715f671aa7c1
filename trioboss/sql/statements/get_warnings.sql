-- The warnings that were kept, of one queue or of all, the newest first.
SELECT id, queue, kind, message, first_on, last_on, count
FROM trioboss.warning
WHERE (:queue::text IS NULL OR queue = :queue) AND last_on >= coalesce(:since::timestamptz, '-infinity')
ORDER BY id DESC
LIMIT :limit::bigint;
