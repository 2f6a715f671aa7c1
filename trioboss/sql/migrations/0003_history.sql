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
-- A table is made first and attached then, so that nobody who settles a job has to wait. Readers do, for a lock on the
-- default table; where one of them is in the way for longer than a moment, the next call makes the rest.
CREATE FUNCTION trioboss.add_days(today date, ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '50ms'
AS $$
DECLARE
    history text;
    made text;
    day date;
    number integer := 0;
BEGIN
    FOREACH history IN ARRAY ARRAY['archive', 'attempt'] LOOP
        FOR day IN SELECT generate_series(today - 1, today + ahead, interval '1 day') LOOP
            made := history || to_char(day, '_YYYYMMDD');
            CONTINUE WHEN to_regclass(format('trioboss.%I', made)) IS NOT NULL;
            BEGIN
                EXECUTE format('CREATE TABLE trioboss.%I (LIKE trioboss.%I INCLUDING DEFAULTS)', made, history);
                PERFORM trioboss.copy_rights(format('trioboss.%I', history), format('trioboss.%I', made));
                EXECUTE format('ALTER TABLE trioboss.%I ATTACH PARTITION trioboss.%I FOR VALUES FROM (%L) TO (%L)',
                    history, made, day::timestamptz, (day + 1)::timestamptz);
                number := number + 1;
            EXCEPTION
                WHEN check_violation THEN
                    NULL;
                WHEN lock_not_available THEN
                    EXIT;
            END;
        END LOOP;
    END LOOP;
    RETURN number;
END $$;

-- Drop the table of one day. While it waits for that, everybody waits for it, so it gives up at once: try again later.
CREATE FUNCTION trioboss.drop_day(history text, day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    gone text := history || to_char(day, '_YYYYMMDD');
BEGIN
    IF history NOT IN ('archive', 'attempt') THEN
        RAISE EXCEPTION '% is not a history table', history USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- For streams, which must notice that they missed rows.
    EXECUTE format('INSERT INTO trioboss.retired SELECT $1, xid FROM trioboss.%I ORDER BY xid DESC LIMIT 1 '
                   'ON CONFLICT (history) DO UPDATE SET xid = greatest(retired.xid, EXCLUDED.xid)', gone)
    USING history;
    EXECUTE format('DROP TABLE trioboss.%I', gone);
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
REVOKE ALL ON FUNCTION trioboss.add_days(date, integer), trioboss.drop_day(text, date),
                       trioboss.drop_if_ended(text, uuid[]) FROM PUBLIC;

DO $$ BEGIN PERFORM trioboss.add_days((now() AT TIME ZONE 'UTC')::date, 7); END $$;
