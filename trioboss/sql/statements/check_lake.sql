-- Whether an export still holds a lake: one row, or none if another has taken it.
SELECT batch FROM trioboss.lake WHERE id = :lake::uuid AND token = :token::bigint;
