-- A worker takes and settles jobs, sends jobs, keeps schedules, and does maintenance. It cannot create, change or
-- delete a queue, nor the schema.
GRANT USAGE ON SCHEMA "trioboss" TO :"role";
GRANT SELECT ON trioboss.version, trioboss.lock_seed, trioboss.queue, trioboss.all_jobs, trioboss.lake, trioboss.deployment TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON
    trioboss.live_job, trioboss.live_job_common, trioboss.archive, trioboss.schedule, trioboss.subscription,
    trioboss.worker, trioboss.leader, trioboss.queue_sample, trioboss.sampling, trioboss.warning, trioboss.audit TO :"role";
GRANT SELECT, INSERT ON trioboss.job, trioboss.attempt TO :"role";
GRANT SELECT, INSERT, DELETE ON
    trioboss.backlog_check, trioboss.throttle, trioboss.staging, trioboss.tick, trioboss.idle_dispatcher,
    trioboss.completion_waiter TO :"role";
GRANT SELECT, DELETE ON trioboss.reader TO :"role";
GRANT SELECT, INSERT, UPDATE ON trioboss.deleted_history, trioboss.history_audit TO :"role";
GRANT USAGE ON SEQUENCE trioboss.job_seq TO :"role";
GRANT EXECUTE ON FUNCTION
    trioboss.text_size(jsonb), trioboss.readable(jsonb), trioboss.answer_size(integer, jsonb, jsonb, jsonb), trioboss.lock_number(text, bigint), trioboss.notify(text), trioboss.make_id(), trioboss.key_lock(text, text, bigint), trioboss.check_job_options(jsonb),
    trioboss.check_job_notes(jsonb), trioboss.find_problem(jsonb, jsonb, jsonb, timestamptz, double precision, timestamptz, timestamptz),
    trioboss.take_throttle_slot(text, text, trioboss.seconds, boolean, timestamptz, uuid),
    trioboss.return_throttle_slot(text, timestamptz, uuid),
    trioboss.queued_readiness(timestamptz, timestamptz, text), trioboss.queued_slot(text, text, integer),
    trioboss.key_backlog(boolean, text), trioboss.backlog_rank(text, integer), trioboss.kept_owner(text, text), trioboss.first_fitting(tid[], integer[], bigint), trioboss.drop_if_ended(text, uuid[]), trioboss.drop_sent(text, uuid[]),
    trioboss.retry_delay(double precision, boolean, double precision, double precision, double precision, integer,
                         double precision),
    trioboss.completion_of(uuid, text, jsonb, text, jsonb, timestamptz, timestamptz, timestamptz, integer),
    trioboss.add_counts(integer[], integer[]), trioboss.add_days(date, integer), trioboss.drop_day(text, date), trioboss.lead(uuid, double precision, boolean),
    trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot) TO :"role";
