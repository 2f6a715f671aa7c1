DROP TABLE trioboss.live_job, trioboss.backlog_check, trioboss.throttle;
DROP SEQUENCE trioboss.job_seq;
DROP DOMAIN trioboss.job_options, trioboss.job_notes, trioboss.document, trioboss.unique_key, trioboss.backlog;
DROP FUNCTION trioboss.check_job_options(jsonb), trioboss.check_job_notes(jsonb),
    trioboss.text_size(jsonb), trioboss.readable(jsonb), trioboss.find_problem(jsonb, jsonb, jsonb, timestamptz, double precision, timestamptz, timestamptz),
    trioboss.take_throttle_slot(text, text, trioboss.seconds, boolean, timestamptz, uuid),
    trioboss.queued_readiness(timestamptz, timestamptz, text),
    trioboss.queued_slot(text, text, integer), trioboss.key_backlog(boolean, text), trioboss.backlog_rank(text, integer), trioboss.kept_owner(text, text), trioboss.first_fitting(tid[], integer[], bigint), trioboss.answer_size(integer, jsonb, jsonb, jsonb), trioboss.measure_data(),
    trioboss.retry_delay(double precision, boolean, double precision, double precision, double precision, integer,
                         double precision),
    trioboss.key_lock(text, text, bigint), trioboss.add_backlog_check(), trioboss.follow_change(), trioboss.follow_priority(), trioboss.fill_in_job(),
    trioboss.copy_rights(regclass, regclass), trioboss.run_between_others(text, interval),
    trioboss.add_job_table(text, text), trioboss.drop_job_table(text), trioboss.set_up_queue(text, text),
    trioboss.create_queue(text, jsonb), trioboss.delete_queue(text);
DROP TYPE trioboss.readiness;
