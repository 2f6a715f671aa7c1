-- Notify the waiters for these jobs that they have changed, in the caller's transaction: if and when it commits.
SELECT trioboss.notify('*changed ' || id) FROM unnest(:ids::uuid[]) id;
