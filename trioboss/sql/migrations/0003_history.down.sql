DROP VIEW trioboss.job, trioboss.all_jobs;
DROP TABLE trioboss.archive, trioboss.attempt;
DROP FUNCTION trioboss.insert_job(), trioboss.hold_common_table(), trioboss.completion_of(uuid, text, jsonb, text, jsonb, timestamptz, timestamptz,
    timestamptz, integer), trioboss.add_days(date, integer), trioboss.drop_day(text, date), trioboss.drop_if_ended(text, uuid[]),
    trioboss.drop_sent(text, uuid[]),    trioboss.return_throttle_slot(text, timestamptz, uuid);
DROP TYPE trioboss.outcome;
