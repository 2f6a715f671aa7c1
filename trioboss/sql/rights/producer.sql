-- A producer sends jobs. It can neither read payloads nor change, take or delete a job, its own included.
GRANT USAGE ON SCHEMA "trioboss" TO :"role";
GRANT SELECT ON trioboss.version, trioboss.queue, trioboss.subscription TO :"role";
GRANT INSERT (
    id, name, priority, data, retry_limit, retry_delay, retry_backoff, retry_delay_max, retry_jitter, retry_window,
    start_after, singleton_key, singleton_on, unique_until, expire_in, heartbeat, auto_heartbeat,
    max_lease_extensions, created_on, keep_until, delete_after, dead_letter, policy, gate
) ON trioboss.job, trioboss.job_common TO :"role";
GRANT SELECT (id, name) ON trioboss.archive TO :"role";
GRANT SELECT (id, name, state, gate, start_after) ON trioboss.job, trioboss.job_common TO :"role";
GRANT SELECT (name) ON trioboss.freed_key TO :"role";
GRANT SELECT, INSERT, DELETE ON trioboss.throttle, trioboss.staging TO :"role";
GRANT SELECT ON trioboss.sleeper TO :"role";
GRANT USAGE ON SEQUENCE trioboss.job_seq TO :"role";
GRANT EXECUTE ON FUNCTION
    trioboss.turn(text, text), trioboss.drop_if_ended(text, uuid[]), trioboss.lead(uuid, double precision, boolean)
    TO :"role";
