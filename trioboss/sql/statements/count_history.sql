-- How many rows of a history table were written by transactions from `first` on and before `sealed`.
SELECT count(*) FROM trioboss.archive WHERE xid >= :first::text::xid8 AND xid < :sealed::text::xid8;
