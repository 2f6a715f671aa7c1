-- Keep warnings: three arrays of the same length. A warning of the same queue and kind that was there three minutes ago
-- or later is the same one, and goes on.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::timestamptz, statement_timestamp()) AS now
), given AS MATERIALIZED (
    SELECT DISTINCT ON (queue, kind) queue COLLATE "C" AS queue, kind COLLATE "C" AS kind, left(message, 2000) AS message
    FROM unnest(:queues::text[], :kinds::text[], :messages::text[]) g (queue, kind, message)
    ORDER BY queue, kind
), known AS MATERIALIZED (
    SELECT w.id, w.queue, w.kind
    FROM (SELECT * FROM trioboss.warning ORDER BY id DESC LIMIT 10000) w, clock c
    WHERE w.last_on > c.now - interval '3 min'
), repeated AS (
    UPDATE trioboss.warning w SET message = g.message, last_on = c.now, count = least(w.count + 1, 1000000000)
    FROM known k, given g, clock c
    WHERE w.id = k.id AND k.queue IS NOT DISTINCT FROM g.queue AND k.kind = g.kind
)
INSERT INTO trioboss.warning (queue, kind, message, first_on, last_on)
SELECT g.queue, g.kind, g.message, c.now, c.now FROM given g, clock c
WHERE NOT EXISTS (SELECT FROM known k WHERE k.queue IS NOT DISTINCT FROM g.queue AND k.kind = g.kind);
