-- The locks that make the order of the keys in a stage the order of commit (at most 1024 a queue).
SELECT DISTINCT trioboss.key_lock(:queue::text, singleton_key, (SELECT seed FROM trioboss.lock_seed))
FROM trioboss.stage_row WHERE singleton_key IS NOT NULL;
