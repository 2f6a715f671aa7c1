-- Deferred jobs whose time has come become ready: up to 1000, or as many as are wanted. For policies that are not keyed;
-- place.sql does it for the others. In order of their time; where more are due at once, the most urgent of the first
-- ten thousand as well.
-- Returns, like place.sql: 0, whether to call it again at once, null.
WITH asked AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now, greatest(1000, :limit::bigint) AS most
    FROM trioboss.queue WHERE name = :queue::text AND NOT keyed
), ripe AS MATERIALIZED (
    SELECT ctid AS row FROM trioboss.job_common
    WHERE name = :queue AND gate = 3 AND state < 'active' AND start_after <= (SELECT now FROM asked)
    ORDER BY start_after
    LIMIT (SELECT most FROM asked)
    FOR UPDATE SKIP LOCKED
), stray AS MATERIALIZED (                        -- arrived while the queue of this name was a keyed one
    SELECT ctid AS row FROM trioboss.job_common
    WHERE name = :queue AND gate = 1 AND state < 'active' AND start_after <= (SELECT now FROM asked)
    ORDER BY start_after
    LIMIT (SELECT most FROM asked)
    FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
    SELECT d.id, d.priority, d.seq
    FROM (
        SELECT id, priority, seq FROM trioboss.job_common
        WHERE name = :queue AND gate = 3 AND state < 'active' AND start_after <= (SELECT now FROM asked)
          AND (SELECT count(*) FROM ripe) >= (SELECT most FROM asked)
        ORDER BY start_after
        LIMIT 10000
    ) d
    ORDER BY d.priority DESC, d.seq
), urgent AS MATERIALIZED (
    SELECT j.row
    FROM due d, LATERAL (
        SELECT ctid AS row FROM trioboss.job_common
        -- By its id, and not by an index of gates: so says IS NOT DISTINCT.
        WHERE name = :queue AND id = d.id AND gate IS NOT DISTINCT FROM 3 AND state < 'active'
        FOR UPDATE SKIP LOCKED
    ) j
    LIMIT (SELECT most FROM asked)
), ripened AS (
    UPDATE trioboss.job_common SET gate = 0
    WHERE ctid = ANY (ARRAY (SELECT row FROM ripe UNION SELECT row FROM stray UNION SELECT row FROM urgent))
)
SELECT 0::bigint, coalesce((SELECT count(*) FROM ripe) >= (SELECT most FROM asked), false), NULL::text;
