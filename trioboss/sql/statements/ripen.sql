-- Deferred jobs whose time has come become ready. For policies that are not keyed; place.sql does it for the others.
UPDATE trioboss.job_common SET gate = 0
WHERE ctid = ANY (ARRAY (
    SELECT ctid FROM trioboss.job_common
    WHERE name = :queue::text AND gate IN (1, 3) AND state < 'active'
      AND start_after <= coalesce(:now::timestamptz, statement_timestamp())
      AND (SELECT NOT keyed FROM trioboss.queue WHERE name = :queue)
    ORDER BY start_after
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
));
