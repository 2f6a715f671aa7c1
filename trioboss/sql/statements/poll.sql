-- Is anything to be done in these queues? For the listener, after every LISTEN and then from time to time, in case a
-- notification was lost. One statement for all queues: `next_due` says in how many seconds there is something to claim,
-- 0 for now. It also notifies, if it can, so that the listener can tell whether notifications arrive.
-- OFFSET 0: the condition below would repeat these searches otherwise.
-- The row without a queue has whether the candidate leads, if there is one, and the time of the database.
SELECT NULL::text AS queue, NULL::float8 AS next_due,
       CASE WHEN :candidate::uuid IS NOT NULL THEN trioboss.lead(:candidate, :seconds::float8, :session::boolean) END AS leads,
       trioboss.notify('*probe ' || :token::text) AS notified, coalesce(:now::timestamptz, statement_timestamp()) AS now
UNION ALL
SELECT q.name, d.next_due, NULL, NULL, NULL
FROM unnest(:queues::text[]) AS q (name), LATERAL (
    SELECT CASE WHEN EXISTS (SELECT FROM trioboss.live_job WHERE queue = q.name AND readiness = 'ready')
                  OR EXISTS (SELECT FROM trioboss.backlog_check WHERE queue = q.name)
                THEN 0::float8
                ELSE (SELECT greatest(extract(epoch FROM start_after - coalesce(:now::timestamptz, statement_timestamp()))::float8, 0)
                      FROM trioboss.live_job WHERE queue = q.name AND readiness = 'deferred' ORDER BY start_after LIMIT 1)
           END AS next_due
    OFFSET 0
) d
WHERE d.next_due IS NOT NULL;
