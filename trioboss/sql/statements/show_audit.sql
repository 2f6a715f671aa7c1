-- Actions of people at the dashboard, the newest first, before the id `high`.
SELECT id, at, who, action, queue, filter, requested, affected
FROM trioboss.audit WHERE id < :high::uuid ORDER BY id DESC LIMIT :limit::bigint;
