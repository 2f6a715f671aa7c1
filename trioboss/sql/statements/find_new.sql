-- The first transaction from `first` on and before `sealed` that left a row in history. No row: none did.
SELECT xid::text::bigint AS xid
FROM trioboss.archive
WHERE xid >= :first::text::xid8 AND xid < :sealed::text::xid8
ORDER BY xid
LIMIT 1;
