-- History: ended jobs and ended attempts, append only, one table a day. Retention drops whole days; Spark
-- reads here and never in the hot table.

-- The columns of job, without gate, and with the transaction that wrote the row: readers that follow the
-- archive order by it, because rows become visible in the order of commits and not of their numbers.
CREATE TABLE trioboss.archive (
    LIKE trioboss.job,
    xid  xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (completed_on);
ALTER TABLE trioboss.archive DROP COLUMN gate;
ALTER TABLE trioboss.archive ALTER COLUMN completed_on SET NOT NULL;
CREATE INDEX archive_id ON trioboss.archive (id);

CREATE TABLE trioboss.archive_default PARTITION OF trioboss.archive DEFAULT;

-- Attempts that did not end well. The archived row of a completed job is the record of its last attempt.
CREATE TABLE trioboss.attempt (
    job_id      uuid NOT NULL,
    name        text COLLATE "C" NOT NULL,
    attempt     integer NOT NULL,
    worker      uuid,
    started_on  timestamptz NOT NULL,
    ended_on    timestamptz NOT NULL,
    outcome     text COLLATE "C" NOT NULL,      -- failed, expired, lost, released, cancelled
    error       jsonb,
    singleton_key text COLLATE "C",
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (ended_on);
CREATE INDEX attempt_job ON trioboss.attempt (job_id);

CREATE TABLE trioboss.attempt_default PARTITION OF trioboss.attempt DEFAULT;

CREATE VIEW trioboss.all_jobs AS
SELECT id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
       retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
       unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
       created_on, completed_on, keep_until, delete_after, output, progress, dead_letter, policy, worker,
       source_name, source_id, source_created_on, source_retry_count, seq, attempt
FROM trioboss.job
UNION ALL
SELECT id, name, priority, data, state, retry_limit, retry_count, retry_delay, retry_backoff, retry_delay_max,
       retry_jitter, retry_window, backoff_count, failed_on, start_after, started_on, singleton_key, singleton_on,
       unique_until, expire_in, heartbeat, auto_heartbeat, heartbeat_on, max_lease_extensions, lease_extensions,
       created_on, completed_on, keep_until, delete_after, output, progress, dead_letter, policy, worker,
       source_name, source_id, source_created_on, source_retry_count, seq, attempt
FROM trioboss.archive;

-- Make the tables of the days from the one before `today` to `ahead` days after it. A day whose rows already
-- went to the default table is left there. Days are days in UTC. Returns how many tables it made.
CREATE FUNCTION trioboss.add_days(today date, ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    history text;
    day date;
    made integer := 0;
BEGIN
    FOREACH history IN ARRAY ARRAY['archive', 'attempt'] LOOP
        FOR day IN SELECT generate_series(today - 1, today + ahead, interval '1 day') LOOP
            CONTINUE WHEN to_regclass(format('trioboss.%I', history || to_char(day, '_YYYYMMDD'))) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE trioboss.%I PARTITION OF trioboss.%I FOR VALUES FROM (%L) TO (%L)',
                    history || to_char(day, '_YYYYMMDD'), history, day::timestamptz, (day + 1)::timestamptz);
                PERFORM trioboss.copy_rights(format('trioboss.%I', history),
                                             format('trioboss.%I', history || to_char(day, '_YYYYMMDD')));
                made := made + 1;
            EXCEPTION WHEN check_violation THEN
                NULL;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

-- Drop the table of one day.
CREATE FUNCTION trioboss.drop_day(history text, day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF history NOT IN ('archive', 'attempt') THEN
        RAISE EXCEPTION '% is not a history table', history USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format('DROP TABLE trioboss.%I', history || to_char(day, '_YYYYMMDD'));
END $$;

-- The same id twice is one job, also when the first has ended: take back those just sent whose namesake is in the
-- archive. It acts for the owner, so that senders need no right to delete jobs: what it deletes is never another job.
CREATE FUNCTION trioboss.drop_if_ended(queue text, ids uuid[]) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ended uuid;
BEGIN
    FOR ended IN SELECT a.id FROM trioboss.archive a WHERE a.id = ANY (ids) AND a.name = queue LOOP
        DELETE FROM trioboss.job j WHERE j.name = queue AND j.id = ended;
        IF FOUND THEN
            RETURN NEXT ended;
        END IF;
    END LOOP;
END $$;

-- Functions are for the roles they are granted to, not for everybody.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "trioboss" FROM PUBLIC;

DO $$ BEGIN PERFORM trioboss.add_days((now() AT TIME ZONE 'UTC')::date, 7); END $$;
