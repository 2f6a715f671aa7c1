-- The files of the last batch are in place, so the lake has all rows of the transactions before `exported`. No row:
-- another export has taken the lake, and finishes the batch itself.
UPDATE trioboss.lake SET pending = NULL, exported = greatest(exported, :exported::text::xid8), exported_on = now()
WHERE id = :lake::uuid AND token = :token::bigint AND batch = :number::bigint
RETURNING batch;
