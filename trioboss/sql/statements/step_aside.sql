-- Keyed policies with priorities: ready jobs above `max_priority` that nobody has claimed let one of their key that is
-- not above it go first, where there is one. Runs under lock_key_order.sql, before place.sql, which gives the turn away.
-- Looks at no more than five thousand.
UPDATE trioboss.job_common SET gate = 2
WHERE ctid = ANY (ARRAY (
    SELECT j.row
    FROM (
        SELECT id, coalesce(singleton_key, '') AS key
        FROM trioboss.job_common
        WHERE name = :queue::text AND gate = 0 AND state < 'active' AND policy IN ('singleton', 'stately')
          AND priority > :max_priority::int
        ORDER BY priority DESC, seq
        LIMIT 5000
    ) h, LATERAL (
        SELECT ctid AS row FROM trioboss.job_common
        -- By its id, and not by an index of gates: so says IS NOT DISTINCT.
        WHERE name = :queue AND id = h.id AND gate IS NOT DISTINCT FROM 0 AND state < 'active'
        FOR UPDATE SKIP LOCKED
    ) j
    WHERE (
        SELECT true
        FROM (VALUES (1), (2)) g (gate), LATERAL (
            SELECT FROM trioboss.job_common l
            WHERE l.name = :queue AND l.gate = g.gate AND coalesce(l.singleton_key, '') = h.key
              AND l.gate IN (1, 2) AND l.state < 'active' AND l.policy IN ('singleton', 'stately', 'key_strict_fifo')
              AND CASE WHEN l.policy = 'key_strict_fifo' THEN 0 ELSE -l.priority END >= -:max_priority::int
            LIMIT 1
        ) l
        LIMIT 1
    )
    LIMIT :limit::bigint
));
