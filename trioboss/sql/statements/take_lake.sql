-- Take a lake for an export: raise its token, so that an export that took it before can commit nothing more. A lake
-- that is not known yet begins with the batch and the transaction that its manifest has. Returns the token, and the
-- last batch with its pending moves.
INSERT INTO trioboss.lake (id, address, token, batch, exported)
SELECT l.id, :address::text, 1, :batch::bigint, :exported::text::xid8
FROM (SELECT :lake::uuid AS id) l
WHERE l.id IS NOT NULL
ON CONFLICT (id) DO UPDATE SET token = lake.token + 1, address = EXCLUDED.address
RETURNING token, batch, pending::text;
