-- A reader reads everything, payloads included, and may wait for a job. It changes nothing.
GRANT USAGE ON SCHEMA "trioboss" TO :"role";
GRANT SELECT ON
    trioboss.version, trioboss.lock_seed, trioboss.queue, trioboss.job, trioboss.live_job, trioboss.live_job_common,
    trioboss.archive, trioboss.attempt, trioboss.all_jobs, trioboss.backlog_check, trioboss.throttle, trioboss.schedule,
    trioboss.tick, trioboss.deployment, trioboss.subscription, trioboss.idle_dispatcher, trioboss.worker, trioboss.lake, trioboss.history_audit, trioboss.deleted_history,
    trioboss.load, trioboss.rejected, trioboss.queue_sample, trioboss.sampling, trioboss.warning, trioboss.audit TO :"role";
GRANT SELECT, INSERT, DELETE ON trioboss.completion_waiter TO :"role";
GRANT EXECUTE ON FUNCTION
    trioboss.text_size(jsonb), trioboss.readable(jsonb), trioboss.lock_number(text, bigint), trioboss.notify(text), trioboss.lead(uuid, double precision, boolean),
    trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot) TO :"role";
