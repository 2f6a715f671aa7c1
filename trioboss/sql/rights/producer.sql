-- A producer sends jobs. It can neither read payloads, keys and throttle slots nor change, take or delete a job, its
-- own included. The trigger fill_in_job sets the columns of policies, whatever it writes there.
GRANT USAGE ON SCHEMA "trioboss" TO :"role";
GRANT SELECT ON trioboss.version, trioboss.queue, trioboss.subscription, trioboss.lock_seed TO :"role";
GRANT INSERT (
    id, queue, priority, rank, created_on, start_after, key, backlog, slot, unique_key, readiness, options, data, notes
) ON trioboss.live_job, trioboss.live_job_common TO :"role";
GRANT SELECT (id, queue, seq, readiness, start_after) ON trioboss.live_job, trioboss.live_job_common
    TO :"role";
GRANT INSERT ON trioboss.job TO :"role";
GRANT SELECT (id, name) ON trioboss.job TO :"role";
GRANT SELECT (id, queue) ON trioboss.archive TO :"role";
GRANT INSERT ON trioboss.backlog_check TO :"role";
GRANT SELECT (queue) ON trioboss.backlog_check TO :"role";
GRANT SELECT, INSERT, DELETE ON trioboss.staging TO :"role";
GRANT SELECT ON trioboss.idle_dispatcher TO :"role";
GRANT USAGE ON SEQUENCE trioboss.job_seq TO :"role";
GRANT EXECUTE ON FUNCTION
    trioboss.text_size(jsonb), trioboss.lock_number(text, bigint), trioboss.notify(text), trioboss.make_id(), trioboss.key_lock(text, text, bigint), trioboss.check_job_options(jsonb),
    trioboss.check_job_notes(jsonb), trioboss.take_throttle_slot(text, text, trioboss.seconds, boolean, timestamptz, uuid),
    trioboss.return_throttle_slot(text, timestamptz, uuid),
    trioboss.queued_readiness(timestamptz, timestamptz, text), trioboss.queued_slot(text, text, integer),
    trioboss.key_backlog(boolean, text), trioboss.backlog_rank(text, integer), trioboss.drop_if_ended(text, uuid[]), trioboss.drop_sent(text, uuid[]),
    trioboss.lead(uuid, double precision, boolean) TO :"role";
