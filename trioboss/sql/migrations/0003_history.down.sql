DROP FUNCTION trioboss.drop_if_ended(text, uuid[]);
DROP FUNCTION trioboss.drop_day(text, date);
DROP FUNCTION trioboss.add_days(date, integer);
DROP VIEW trioboss.all_jobs;
DROP TABLE trioboss.attempt;
DROP TABLE trioboss.archive;
