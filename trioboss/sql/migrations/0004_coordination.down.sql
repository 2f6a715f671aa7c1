DROP FUNCTION trioboss.lead(uuid, double precision, boolean);
DROP TABLE trioboss.staging, trioboss.leader, trioboss.worker, trioboss.completion_waiter, trioboss.idle_dispatcher,
           trioboss.subscription, trioboss.deployment, trioboss.tick, trioboss.schedule;
