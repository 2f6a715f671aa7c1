-- Keyed policies: decide whose turn it is. The only statement that makes a keyed job ready.
--
-- Runs under lock_key_order.sql, in the same short transaction of ours, so its snapshot is newer than the lock
-- and nobody else decides at the same time. It never waits for a row: a job at the head of its line that
-- somebody is just changing is not passed over; its key is tried again by the next call.
--
-- Work per call is bounded: 500 arrivals, or as many as are wanted, the keys that were freed since, and 500 keys more.
-- Those are for when so much has arrived for keys that are not free that too few of the free ones are among it: then it
-- goes along the keys that have arrivals, beginning at `after`, and looks at each once, however many jobs stand there.
--
-- A ready job that nobody has claimed steps back in line when a more urgent one of its key arrives; the next call
-- gives the turn away anew. With `max_priority` the first of those up to it gets the turn, if a key has one.
--
-- Returns how many keys have to be tried again in a moment; whether a call at once may find more; and where the next
-- one is to go on (null: at the first key).
WITH RECURSIVE asked AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now, greatest(500, :limit::bigint) AS most
), due AS MATERIALIZED (                          -- with those that somebody is just changing
    SELECT id, coalesce(singleton_key, '') AS key, seq,
           CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank
    FROM trioboss.job_common
    WHERE name = :queue::text AND gate = 3 AND state < 'active' AND start_after <= (SELECT now FROM asked)
    ORDER BY start_after
    LIMIT (SELECT most + 500 FROM asked)
), ripe AS MATERIALIZED (
    SELECT ctid AS row, coalesce(singleton_key, '') AS key, start_after,
           CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank,
           policy = 'key_strict_fifo' AND state = 'retry' AS holds           -- a retry of strict FIFO never let go
    FROM trioboss.job_common
    WHERE name = :queue AND gate = 3 AND state < 'active' AND start_after <= (SELECT now FROM asked)
    ORDER BY start_after
    LIMIT (SELECT most FROM asked)
    FOR UPDATE SKIP LOCKED
), horizon AS MATERIALIZED (                      -- what came later may have to let a deferred job pass
    SELECT CASE WHEN count(*) < a.most THEN a.now ELSE max(start_after) END AS time, count(*) < a.most AS is_now
    FROM asked a LEFT JOIN ripe ON true
    GROUP BY a.now, a.most
), arrived AS MATERIALIZED (
    SELECT ctid AS row, coalesce(singleton_key, '') AS key,
           CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank
    FROM trioboss.job_common
    WHERE name = :queue AND gate = 1 AND state < 'active' AND start_after <= (SELECT time FROM horizon)
    ORDER BY start_after
    LIMIT (SELECT most FROM asked)
    FOR UPDATE SKIP LOCKED
), freed AS (
    DELETE FROM trioboss.freed_key WHERE name = :queue RETURNING key
), key AS MATERIALIZED (
    SELECT k.key, k.best, h.id AS holder, h.is_ready, h.rank
    FROM (
        SELECT c.key, min(c.rank) AS best
        FROM (
            SELECT key, rank FROM ripe WHERE NOT holds
            UNION ALL SELECT key, rank FROM arrived
            UNION ALL SELECT key, NULL FROM freed
        ) c
        GROUP BY c.key
    ) k
    LEFT JOIN LATERAL (
        SELECT id, gate = 0 AND state < 'active' AS is_ready,
               CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END AS rank
        FROM trioboss.job_common
        WHERE name = :queue AND coalesce(singleton_key, '') = k.key
          AND policy IN ('singleton', 'stately', 'key_strict_fifo')
          AND (state = 'active' OR (gate = 0 AND state < 'active')
               OR (policy = 'key_strict_fifo' AND state IN ('retry', 'failed')))
        LIMIT 1
    ) h ON true
), crowd AS MATERIALIZED (
    SELECT (SELECT count(*) FROM arrived) >= a.most AS is_there,
           (SELECT count(*) FROM key WHERE holder IS NULL) < :limit AND (SELECT is_now FROM horizon) AS is_in_the_way
    FROM asked a
), skipped (key, place) AS (
    (SELECT coalesce(singleton_key, ''), 1
     FROM trioboss.job_common
     WHERE name = :queue AND gate = 1 AND state < 'active' AND policy IN ('singleton', 'stately', 'key_strict_fifo')
       AND coalesce(singleton_key, '') >= coalesce(:after::text, '')
       AND (SELECT is_there AND is_in_the_way FROM crowd)
     ORDER BY coalesce(singleton_key, '')
     LIMIT 1)
    UNION ALL
    SELECT n.key, s.place + 1
    FROM skipped s, LATERAL (
        SELECT coalesce(singleton_key, '') AS key
        FROM trioboss.job_common
        WHERE name = :queue AND gate = 1 AND state < 'active' AND policy IN ('singleton', 'stately', 'key_strict_fifo')
          AND coalesce(singleton_key, '') > s.key
        ORDER BY coalesce(singleton_key, '')
        LIMIT 1
    ) n
    WHERE s.place < 500
), free AS MATERIALIZED (
    SELECT key FROM key WHERE holder IS NULL
    UNION
    SELECT s.key
    FROM skipped s
    WHERE (
        SELECT true FROM trioboss.job_common h
        WHERE h.name = :queue AND coalesce(h.singleton_key, '') = s.key
          AND h.policy IN ('singleton', 'stately', 'key_strict_fifo')
          AND (h.state = 'active' OR (h.gate = 0 AND h.state < 'active')
               OR (h.policy = 'key_strict_fifo' AND h.state IN ('retry', 'failed')))
        LIMIT 1
    ) IS NULL
), head AS MATERIALIZED (
    SELECT DISTINCT ON (c.key) c.key, c.id
    FROM (
        SELECT f.key, l.id, l.rank, l.seq
        FROM free f, (VALUES (1), (2)) g (gate), (
            SELECT -2147483648 AS rank UNION ALL SELECT -:max_priority::int WHERE :max_priority IS NOT NULL
        ) m, LATERAL (
            SELECT j.id, j.seq, CASE WHEN j.policy = 'key_strict_fifo' THEN 0 ELSE -j.priority END AS rank
            FROM trioboss.job_common j
            WHERE j.name = :queue AND j.gate = g.gate AND coalesce(j.singleton_key, '') = f.key
              AND j.gate IN (1, 2) AND j.state < 'active' AND j.policy IN ('singleton', 'stately', 'key_strict_fifo')
              AND CASE WHEN j.policy = 'key_strict_fifo' THEN 0 ELSE -j.priority END >= m.rank
            ORDER BY CASE WHEN j.policy = 'key_strict_fifo' THEN 0 ELSE -j.priority END, j.seq
            LIMIT 1
        ) l
        UNION ALL
        -- Tested against a hash of the free keys, however few the planner thinks they are; so says IS TRUE.
        SELECT d.key, d.id, d.rank, d.seq FROM due d WHERE (d.key IN (SELECT key FROM free)) IS TRUE
    ) c
    ORDER BY c.key, c.rank < -:max_priority::int, c.rank, c.seq
), taken AS MATERIALIZED (
    SELECT j.row
    FROM head, LATERAL (
        SELECT ctid AS row FROM trioboss.job_common
        WHERE name = :queue AND id = head.id AND state < 'active'
        FOR UPDATE SKIP LOCKED
    ) j
    UNION ALL
    SELECT row FROM ripe WHERE holds
), made_ready AS (
    UPDATE trioboss.job_common SET gate = 0
    WHERE ctid = ANY (ARRAY (SELECT row FROM taken))
    RETURNING id
), stepped_back AS (
    UPDATE trioboss.job_common SET gate = 2
    WHERE ctid = ANY (ARRAY (
        SELECT j.row
        FROM key k, LATERAL (
            SELECT ctid AS row FROM trioboss.job_common
            -- By its id, and not by an index of gates: so says IS NOT DISTINCT.
            WHERE name = :queue AND id = k.holder AND gate IS NOT DISTINCT FROM 0 AND state < 'active'
            FOR UPDATE SKIP LOCKED
        ) j
        WHERE k.is_ready AND k.best < k.rank
    ))
    RETURNING id
), made_wait AS (                                 -- not who would pass by a ready job that somebody is just changing
    UPDATE trioboss.job_common SET gate = 2
    WHERE ctid = ANY (ARRAY (
        SELECT c.row FROM (SELECT row, key FROM ripe UNION ALL SELECT row, key FROM arrived) c
        WHERE (c.key IN (SELECT key FROM key WHERE is_ready AND best < rank
                         AND holder NOT IN (SELECT id FROM stepped_back))) IS NOT TRUE
        EXCEPT SELECT row FROM taken
    ))
), again AS (
    INSERT INTO trioboss.freed_key (name, key)
    SELECT :queue, key FROM head WHERE id NOT IN (SELECT id FROM made_ready)
    RETURNING key
)
SELECT (SELECT count(*) FROM again),
       (SELECT count(*) FROM stepped_back) > 0 OR NOT (SELECT is_now FROM horizon)
       OR ((SELECT is_there FROM crowd) AND NOT (:after IS NULL AND (SELECT count(*) FROM skipped) BETWEEN 1 AND 499)),
       (SELECT key FROM skipped WHERE place = 500);
