-- Keyed policies: decide whose turn it is. The only statement that makes a keyed job ready.
--
-- Runs under lock_key_order.sql, in the same short transaction of ours, so its snapshot is newer than the lock
-- and nobody else decides at the same time. It never waits for a row: a job at the head of its line that
-- somebody is just changing is not passed over; its key is tried again by the next call.
-- Work per call is bounded: up to 500 arrivals, and the keys that were freed since.
--
-- Returns how many keys have to be tried again.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), arrived AS MATERIALIZED (
    SELECT ctid AS row, id, coalesce(singleton_key, '') AS key, seq,
           CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank,
           policy = 'key_strict_fifo' AND state = 'retry' AS holds           -- a retry of strict FIFO never let go
    FROM trioboss.job_common
    WHERE name = :queue::text AND gate IN (1, 3) AND state < 'active' AND start_after <= (SELECT now FROM clock)
    ORDER BY start_after
    LIMIT 500
    FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (                          -- with those that somebody is just changing
    SELECT id, coalesce(singleton_key, '') AS key, seq,
           CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank
    FROM trioboss.job_common
    WHERE name = :queue AND gate IN (1, 3) AND state < 'active' AND start_after <= (SELECT now FROM clock)
    ORDER BY start_after
    LIMIT 1000
), freed AS (
    DELETE FROM trioboss.freed_key WHERE name = :queue RETURNING key
), free AS MATERIALIZED (
    SELECT k.key
    FROM (SELECT key FROM arrived WHERE NOT holds UNION SELECT key FROM freed) k
    WHERE (
        SELECT true FROM trioboss.job_common h
        WHERE h.name = :queue AND coalesce(h.singleton_key, '') = k.key
          AND h.policy IN ('singleton', 'stately', 'key_strict_fifo')
          AND (h.state = 'active' OR (h.gate = 0 AND h.state < 'active')
               OR (h.policy = 'key_strict_fifo' AND h.state IN ('retry', 'failed')))
        LIMIT 1
    ) IS NULL
), head AS MATERIALIZED (
    SELECT DISTINCT ON (c.key) c.key, c.id
    FROM (
        SELECT f.key, l.id, l.rank, l.seq
        FROM free f, LATERAL (
            SELECT j.id, j.seq, CASE WHEN j.policy = 'key_strict_fifo' THEN 0 ELSE -j.priority END AS rank
            FROM trioboss.job_common j
            WHERE j.name = :queue AND coalesce(j.singleton_key, '') = f.key
              AND j.gate IN (1, 2) AND j.state < 'active' AND j.policy IN ('singleton', 'stately', 'key_strict_fifo')
            ORDER BY CASE WHEN j.policy = 'key_strict_fifo' THEN 0 ELSE -j.priority END, j.seq
            LIMIT 1
        ) l
        UNION ALL
        SELECT f.key, a.id, a.rank, a.seq FROM free f JOIN arrived a ON a.key = f.key AND NOT a.holds
        UNION ALL
        SELECT f.key, d.id, d.rank, d.seq FROM free f JOIN due d ON d.key = f.key
    ) c
    ORDER BY c.key, c.rank, c.seq
), taken AS MATERIALIZED (
    SELECT j.row
    FROM head, LATERAL (
        SELECT ctid AS row FROM trioboss.job_common
        WHERE name = :queue AND id = head.id AND state < 'active'
        FOR UPDATE SKIP LOCKED
    ) j
    UNION ALL
    SELECT row FROM arrived WHERE holds
), made_ready AS (
    UPDATE trioboss.job_common SET gate = 0
    WHERE ctid = ANY (ARRAY (SELECT row FROM taken))
    RETURNING id
), made_wait AS (
    UPDATE trioboss.job_common SET gate = 2
    WHERE ctid = ANY (ARRAY (SELECT row FROM arrived EXCEPT SELECT row FROM taken))
), again AS (
    INSERT INTO trioboss.freed_key (name, key)
    SELECT :queue, key FROM head WHERE id NOT IN (SELECT id FROM made_ready)
    RETURNING key
)
SELECT count(*) FROM again;
