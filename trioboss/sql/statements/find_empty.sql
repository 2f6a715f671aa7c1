-- The tables that the migrations fill with a row, and that have none: without the seed of advisory locks no session waits
-- for another, and without its row sampling stops.
SELECT 'lock_seed' AS name WHERE NOT EXISTS (SELECT FROM trioboss.lock_seed)
UNION ALL
SELECT 'sampling' WHERE NOT EXISTS (SELECT FROM trioboss.sampling);
