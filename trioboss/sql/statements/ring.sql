-- In the caller's transaction: the word to the workers of a queue goes out if and when it commits.
SELECT pg_notify('trioboss', :queue::text);
