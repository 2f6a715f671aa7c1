-- Whether retention keeps rows that are not in a lake.
UPDATE trioboss.lake SET holds = :holds::boolean WHERE id = :lake::uuid AND holds <> :holds;
