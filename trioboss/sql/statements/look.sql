-- Is anything to be done in these queues? For the listener, after every LISTEN and then now and then, in case a word
-- got lost. One statement for all queues: `next_due` says in how many seconds there is something to claim, 0 for now.
-- It speaks on the channel, too, so that the listener hears whether its ears work.
-- The first row says whether the boss that is the candidate leads, if there is one, and what time it is.
SELECT NULL::text AS name, NULL::float8 AS next_due,
       CASE WHEN :candidate::uuid IS NOT NULL THEN trioboss.lead(:candidate, :seconds::float8, :session::boolean) END AS leads,
       pg_notify('trioboss', '*probe ' || :token::text), coalesce(:now::timestamptz, statement_timestamp()) AS now
UNION ALL
SELECT q.name, d.next_due, NULL, NULL, NULL
FROM unnest(:queues::text[]) AS q (name), LATERAL (
    SELECT CASE WHEN EXISTS (SELECT FROM trioboss.job WHERE name = q.name AND gate = 0 AND state < 'active')
                  OR EXISTS (SELECT FROM trioboss.freed_key WHERE name = q.name)
                THEN 0::float8
                ELSE (SELECT greatest(extract(epoch FROM min(i.start_after) - coalesce(:now::timestamptz, statement_timestamp()))::float8, 0)
                      FROM (VALUES (1), (3)) g (gate), LATERAL (
                          SELECT start_after FROM trioboss.job WHERE name = q.name AND gate = g.gate AND gate IN (1, 3)
                            AND state < 'active' ORDER BY start_after LIMIT 1
                      ) i
                      HAVING count(*) > 0) END AS next_due
    OFFSET 0
) d
WHERE d.next_due IS NOT NULL;
