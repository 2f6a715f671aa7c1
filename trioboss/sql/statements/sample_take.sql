-- Begin a sample: the transaction that runs this adds what is new since the last one (sample_*.sql, in this
-- transaction). One transaction at a time, at most every five seconds; for another one there is nothing to add. A gap
-- of more than an hour, in which no boss did maintenance, is left out. Ids are read two seconds late, because
-- transactions take time.
UPDATE trioboss.sampling s
SET counted_before = CASE WHEN s.counted < t.now THEN greatest(s.counted, t.now - interval '1 hour') ELSE t.now - interval '1 hour' END,
    counted = t.now - interval '2 s',
    xid_before = least(s.xid, pg_snapshot_xmin(pg_current_snapshot())),    -- numbers start again in a restored database
    xid = pg_snapshot_xmin(pg_current_snapshot()), taken_by = pg_current_xact_id()
FROM (
    SELECT f.one, c.now
    FROM trioboss.sampling f, (SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now) c
    WHERE NOT f.counted BETWEEN c.now - interval '5 s' AND c.now + interval '1 hour'    -- later: the server's clock was wrong
    FOR UPDATE OF f SKIP LOCKED
) t
WHERE s.one = t.one;
