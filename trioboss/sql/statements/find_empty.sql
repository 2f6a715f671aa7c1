-- The tables that the migrations fill with a row, and that have none: without the seed of advisory locks no session
-- waits for another, without its row sampling stops, and without its version the schema counts as not installed.
SELECT 'lock_seed' AS name WHERE NOT EXISTS (SELECT FROM trioboss.lock_seed)
UNION ALL
SELECT 'sampling' WHERE NOT EXISTS (SELECT FROM trioboss.sampling)
UNION ALL
SELECT 'version' WHERE NOT EXISTS (SELECT FROM trioboss.version);
