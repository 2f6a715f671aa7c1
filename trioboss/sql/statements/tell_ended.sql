-- In the caller's transaction: tell whoever waits for these jobs, if and when it commits.
SELECT pg_notify('trioboss', '*ended ' || id) FROM unnest(:ids::uuid[]) id;
