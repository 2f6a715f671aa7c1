-- Where to end a batch of about `limit` rows: the transaction of the first row beyond it, of those from `first` on and
-- before `sealed`. No row: there is nothing beyond. A transaction is never divided.
SELECT xid::text::bigint AS xid
FROM trioboss.archive
WHERE xid >= :first::text::xid8 AND xid < :sealed::text::xid8
ORDER BY xid
OFFSET coalesce(:limit::bigint, 0)
LIMIT 1;
