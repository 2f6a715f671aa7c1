-- The keys of a strict FIFO queue that a failed job blocks, in the order of their names.
SELECT singleton_key FROM trioboss.job_common
WHERE name = :queue::text AND state = 'failed' AND state > 'active' AND policy = 'key_strict_fifo'
ORDER BY singleton_key;
