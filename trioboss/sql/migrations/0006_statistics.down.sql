ALTER TABLE trioboss.worker DROP COLUMN info;
ALTER TABLE trioboss.schedule DROP COLUMN paused;
DROP TABLE trioboss.audit, trioboss.warning, trioboss.sampling, trioboss.queue_sample;
DROP FUNCTION trioboss.add_counts(integer[], integer[]);
