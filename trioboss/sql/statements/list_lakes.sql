-- The lakes to which history is exported: id and address.
SELECT id, address FROM trioboss.lake ORDER BY address, id;
