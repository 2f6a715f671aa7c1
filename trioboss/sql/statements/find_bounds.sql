-- The first and the last transaction that left a row in a history table; null if it is empty.
SELECT (SELECT xid FROM trioboss.archive ORDER BY xid LIMIT 1)::text::bigint AS first,
       (SELECT xid FROM trioboss.archive ORDER BY xid DESC LIMIT 1)::text::bigint AS last;
