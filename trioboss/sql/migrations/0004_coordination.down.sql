DROP TABLE trioboss.staging;
DROP FUNCTION trioboss.lead(uuid, double precision, boolean);
DROP TABLE trioboss.leader;
DROP TABLE trioboss.worker;
DROP TABLE trioboss.watcher;
DROP TABLE trioboss.sleeper;
DROP TABLE trioboss.subscription;
DROP TABLE trioboss.tick;
DROP TABLE trioboss.schedule;
