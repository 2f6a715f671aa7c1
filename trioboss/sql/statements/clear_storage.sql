-- Remove all jobs of all queues, live and ended, with their history. Queues, schedules and subscriptions stay.
TRUNCATE trioboss.live_job, trioboss.backlog_check, trioboss.archive, trioboss.attempt, trioboss.throttle, trioboss.staging;
