-- The isolation level of the caller's transaction.
SELECT current_setting('transaction_isolation');
