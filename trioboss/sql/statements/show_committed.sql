-- The time, and which transactions have committed by now, as a pg_snapshot: a page that counts jobs hands it on to the
-- action, which leaves jobs of all others alone. pg_current_snapshot has no subtransactions (savepoints), which have
-- numbers of their own: those in progress are found by their status, among the last 50,000 numbers. A transaction that
-- ends meanwhile has committed before the next statement counts. A standby knows less of them: there only those count
-- as committed that are older than all in progress.
WITH snapshot AS MATERIALIZED (
    SELECT pg_snapshot_xmin(s.now)::text::bigint AS oldest, pg_snapshot_xmax(s.now)::text::bigint AS next, s.now
    FROM (SELECT pg_current_snapshot() AS now) s
), running AS (
    SELECT x::text::bigint AS xid FROM snapshot s, pg_snapshot_xip(s.now) x
    UNION
    SELECT x FROM snapshot s, generate_series(greatest(s.oldest, s.next - 50000), s.next - 1) x
    WHERE NOT pg_is_in_recovery() AND pg_xact_status(x::text::xid8) = 'in progress'
)
SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now,
       CASE WHEN pg_is_in_recovery() THEN concat(s.oldest, ':', s.oldest, ':')
            ELSE concat(coalesce(min(r.xid), s.next), ':', s.next, ':', string_agg(r.xid::text, ',' ORDER BY r.xid)) END AS committed
FROM snapshot s LEFT JOIN running r ON true
GROUP BY s.next, s.oldest;
