-- For how long the event loop of a boss stood still, with the rows of its workers.
UPDATE trioboss.worker SET info = coalesce(info, '{}') || jsonb_build_object('lag', :lag::float8, 'lag_on', statement_timestamp())
WHERE boss = :boss::uuid;
