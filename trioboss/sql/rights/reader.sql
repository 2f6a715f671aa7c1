-- A reader reads everything, payloads included, and may wait for a job. It changes nothing.
GRANT USAGE ON SCHEMA "trioboss" TO :"role";
GRANT SELECT ON
    trioboss.version, trioboss.queue, trioboss.job, trioboss.job_common, trioboss.archive, trioboss.attempt,
    trioboss.all_jobs, trioboss.freed_key, trioboss.throttle, trioboss.schedule, trioboss.tick,
    trioboss.subscription, trioboss.sleeper, trioboss.worker, trioboss.lake, trioboss.retired, trioboss.load, trioboss.rejected
    TO :"role";
GRANT SELECT, INSERT, DELETE ON trioboss.watcher TO :"role";
GRANT EXECUTE ON FUNCTION
    trioboss.lead(uuid, double precision, boolean),
    trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot) TO :"role";
