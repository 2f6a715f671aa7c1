-- In the caller's transaction: those who wait for these jobs are notified of their end if and when it commits.
SELECT trioboss.notify('*ended ' || id) FROM unnest(:ids::uuid[]) id;
