-- In the caller's transaction: the workers of a queue are notified if and when it commits.
SELECT trioboss.notify(:queue::text);
