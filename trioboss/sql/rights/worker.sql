-- A worker takes and settles jobs, sends jobs, keeps schedules, and does upkeep for all. It cannot create, change or
-- delete a queue, nor the schema.
GRANT USAGE ON SCHEMA "trioboss" TO :"role";
GRANT SELECT ON trioboss.version, trioboss.queue, trioboss.all_jobs, trioboss.lake TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON
    trioboss.job, trioboss.job_common, trioboss.archive, trioboss.schedule, trioboss.subscription, trioboss.worker,
    trioboss.leader TO :"role";
GRANT SELECT, INSERT ON trioboss.attempt TO :"role";
GRANT SELECT, INSERT, DELETE ON
    trioboss.freed_key, trioboss.throttle, trioboss.staging, trioboss.tick, trioboss.sleeper, trioboss.watcher
    TO :"role";
GRANT SELECT, DELETE ON trioboss.reader TO :"role";
GRANT SELECT, INSERT, UPDATE ON trioboss.retired TO :"role";
GRANT USAGE ON SEQUENCE trioboss.job_seq TO :"role";
GRANT EXECUTE ON FUNCTION
    trioboss.turn(text, text), trioboss.drop_if_ended(text, uuid[]), trioboss.add_days(date, integer),
    trioboss.drop_day(text, date), trioboss.lead(uuid, double precision, boolean),
    trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot) TO :"role";
