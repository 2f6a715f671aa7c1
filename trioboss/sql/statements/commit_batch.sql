-- Add a batch to a lake. From here on the batch exists: this export, or the next one, puts its files in place. No row:
-- another export has taken the lake, and the batch does not exist.
UPDATE trioboss.lake SET batch = :number::bigint, pending = :pending::jsonb
WHERE id = :lake::uuid AND token = :token::bigint AND batch = :number - 1 AND pending IS NULL
RETURNING batch;
