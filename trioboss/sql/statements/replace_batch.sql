-- Put another batch with the same number in the place of a batch of a lake that is committed and not finished. No row:
-- another export has taken the lake, or the batch was finished.
UPDATE trioboss.lake SET pending = :pending::jsonb
WHERE id = :lake::uuid AND token = :token::bigint AND batch = :number::bigint AND pending IS NOT NULL
RETURNING batch;
