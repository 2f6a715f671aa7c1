-- Whether the transaction that wrote the row j had committed when :committed was taken (show_committed.sql). Without
-- it, every one had. A row has the last 32 bits of its transaction: it is the one with these bits that is nearest to
-- those of :committed.
    (:committed::pg_snapshot IS NULL OR pg_visible_in_snapshot(
        (SELECT greatest(0, x.next + ((j.xmin::text::bigint - x.next + 2147483648) & 4294967295) - 2147483648)::text::xid8
         FROM (SELECT pg_snapshot_xmax(:committed)::text::bigint AS next) x), :committed))
