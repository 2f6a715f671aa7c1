-- The newest transaction of which retention has deleted a row of a history table. No row: it has deleted none.
SELECT xid::text::bigint AS xid FROM trioboss.deleted_history WHERE history = :history::text;
