-- The first and the last block in which the transaction `xid` left rows in a history table; null if it left none.
SELECT (min(ctid)::text::point)[0]::bigint AS first, (max(ctid)::text::point)[0]::bigint AS last
FROM trioboss.archive
WHERE xid = :xid::text::xid8;
