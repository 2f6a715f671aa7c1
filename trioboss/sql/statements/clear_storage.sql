-- Remove all jobs of all queues, live and ended, with their history. Queues, schedules and subscriptions stay.
TRUNCATE trioboss.job, trioboss.archive, trioboss.attempt, trioboss.freed_key, trioboss.throttle, trioboss.staging;
