-- History: ended jobs and ended attempts, one table a day (UTC). A row is never updated; it is deleted when its time is
-- over, or when its job is deleted, erased, retried or resumed. Retention drops whole days, and Spark reads here, never
-- in the live table.

CREATE TYPE trioboss.outcome AS ENUM ('completed', 'cancelled', 'failed');

-- xid is the transaction that wrote the row: readers that follow the archive read in its order, because rows become
-- visible in the order of commits and not of their numbers.
-- The columns are named, too, by the writers (fragments/archive_done.sql, fragments/quarantine_leases.sql,
-- complete_queued.sql), by the statements that bring a job back (fragments/revived_jobs.sql), by the view all_jobs
-- below, and by pipeline/columns.py. tests/sql/test_columns.py fails until each statement has a new one.
-- CONTRIBUTING.md also says where a column gets its values that only the archive has.
CREATE TABLE trioboss.archive (
    seq           bigint NOT NULL,
    created_on    trioboss.instant NOT NULL,
    start_after   trioboss.instant NOT NULL,
    started_on    trioboss.instant,
    completed_on  timestamptz NOT NULL,
    xid           xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id            uuid NOT NULL,
    worker        uuid,
    priority      integer NOT NULL,
    attempt       trioboss.counter NOT NULL,
    retry_count   trioboss.counter NOT NULL,
    outcome       trioboss.outcome NOT NULL,
    policy        trioboss.policy,                   -- of its queue at that time; null if the queue was gone
    queue         text COLLATE "C" NOT NULL,
    key           text COLLATE "C",
    options       trioboss.job_options,
    data          jsonb,
    output        jsonb,
    notes         trioboss.job_notes                 -- as in live_job; also unique_key, and of a failed job its retry_limit and dead_letter
) PARTITION BY RANGE (completed_on);

-- get_job.sql and drop_if_ended.sql: one job. find_ended_jobs.sql: the jobs of a queue; ids are UUIDv7, so nearly in
-- order. A job that has ended is found by its id, and the id cannot be sent again (P4). examine_day.sql and
-- purge_ended.sql: whether a queue has jobs in a day.
CREATE INDEX archive_id ON trioboss.archive (queue, id) WITH (deduplicate_items = off);

-- find_ended_jobs.sql, find_newest_ended_jobs.sql, show_ended_jobs.sql, show_errors.sql and get_queue_stats.sql: jobs
-- that failed or were cancelled, among many that completed. Those that are given the outcome repeat the condition,
-- outcome <> 'completed', because the planner infers it only from a constant. No promise: each would read all ended
-- jobs of a queue.
CREATE INDEX archive_unsuccessful ON trioboss.archive (queue, outcome, id) WHERE outcome <> 'completed';

-- show_ended_jobs.sql: such jobs by the class of their error. The error itself has a stack, and is stored elsewhere: to
-- read many of them takes long. No promise: a page would stop at its budget of jobs before it has found any.
CREATE INDEX archive_error ON trioboss.archive (queue, (left(output ->> 'name', 200) COLLATE "C"), id) WHERE outcome <> 'completed';

-- examine_day.sql and purge_ended.sql: jobs that are kept for another time than their queue says. No promise: retention
-- would read each day that is not over, row by row.
CREATE INDEX archive_kept ON trioboss.archive (queue, completed_on) WHERE options ? 'delete_after';

-- Its rows have no day that bounds their time.
CREATE TABLE trioboss.archive_default PARTITION OF trioboss.archive (
    CONSTRAINT archive_completed_on CHECK (completed_on >= '0001-01-02Z' AND completed_on < '9000-01-01Z')
) DEFAULT;

-- Attempts that did not end well. The archived row of a completed job is the record of its last attempt.
CREATE TABLE trioboss.attempt (
    job_id      uuid NOT NULL,
    queue       trioboss.key NOT NULL,
    key         trioboss.key,
    attempt     integer NOT NULL,
    worker      uuid,
    started_on  trioboss.instant NOT NULL,
    ended_on    timestamptz NOT NULL,
    outcome     trioboss.key NOT NULL,          -- failed, expired, lost, released, cancelled
    error       trioboss.document,
    xid         xid8 NOT NULL DEFAULT pg_current_xact_id()
) PARTITION BY RANGE (ended_on);

-- get_attempts.sql, show_attempts.sql, count_jobs_of.sql and erase_jobs.sql: the attempts of one job. No promise: each
-- would read all attempts of all days.
CREATE INDEX attempt_job ON trioboss.attempt (job_id);

CREATE TABLE trioboss.attempt_default PARTITION OF trioboss.attempt (
    CONSTRAINT attempt_ended_on CHECK (ended_on >= '0001-01-02Z' AND ended_on < '9000-01-01Z')
) DEFAULT;

-- All jobs as users see them: with the options that apply, overridden or of their queue, and with the states of
-- pg-boss. `live` is a constant of each half, so that a query for one of them never touches the other.
-- A document of up to 100 bytes, even if they are compressed, has less than 256 MB as text: it needs no `readable`.
CREATE VIEW trioboss.all_jobs AS
SELECT j.id, j.queue AS name, CASE WHEN pg_column_size(j.data) > 100 THEN trioboss.readable(j.data) ELSE j.data END AS data, j.state, j.readiness, j.priority, j.attempt::int AS attempt, j.retry_count::int AS retry_count,
       coalesce((j.options ->> 'retry_limit')::int, q.retry_limit) AS retry_limit,
       coalesce((j.options ->> 'retry_delay')::float8, q.retry_delay) AS retry_delay,
       coalesce((j.options ->> 'retry_backoff')::boolean, q.retry_backoff) AS retry_backoff,
       coalesce((j.options ->> 'retry_delay_max')::float8, q.retry_delay_max) AS retry_delay_max,
       coalesce((j.options ->> 'retry_jitter')::float8, q.retry_jitter) AS retry_jitter,
       coalesce((j.options ->> 'retry_multiplier')::float8, q.retry_multiplier) AS retry_multiplier,
       coalesce((j.options ->> 'retry_window')::float8, q.retry_window) * interval '1 s' AS retry_window,
       j.key::text AS singleton_key, (j.notes ->> 'singleton_on')::timestamptz AT TIME ZONE 'UTC' AS singleton_on,
       CASE WHEN starts_with(j.unique_key, 'ended:') THEN 'ended' WHEN j.unique_key IS NOT NULL THEN 'started' END AS unique_until,
       j.created_on::timestamptz AS created_on, j.start_after::timestamptz AS start_after, j.started_on::timestamptz AS started_on,
       j.completed_on,
       CASE WHEN j.readiness = 'active' THEN j.expires_on - j.started_on
            ELSE coalesce((j.options ->> 'expire_in')::float8, q.expire_in) * interval '1 s' END AS expire_in,
       CASE WHEN j.readiness = 'active' THEN j.heartbeat
            ELSE coalesce((j.options ->> 'heartbeat')::float8, q.heartbeat) END * interval '1 s' AS heartbeat,
       j.heartbeat_on::timestamptz AS heartbeat_on,
       coalesce((j.options ->> 'auto_heartbeat')::boolean, q.auto_heartbeat) AS auto_heartbeat,
       coalesce((j.options ->> 'max_lease_extensions')::int, q.max_lease_extensions) AS max_lease_extensions,
       coalesce(j.extensions::int, 0) AS lease_extensions,
       coalesce((j.options ->> 'retention')::float8, q.retention, 1209600) * interval '1 s' AS retention,
       greatest(j.start_after, j.created_on)
           + coalesce((j.options ->> 'retention')::float8, q.retention) * interval '1 s' AS keep_until,
       coalesce((j.options ->> 'delete_after')::float8, q.delete_after) * interval '1 s' AS delete_after,
       CASE WHEN pg_column_size(j.output) > 100 THEN trioboss.readable(j.output) ELSE j.output END AS output,
       CASE WHEN pg_column_size(j.notes) > 100 THEN trioboss.readable(j.notes -> 'progress') ELSE j.notes -> 'progress' END AS progress,
       coalesce(j.options ->> 'dead_letter', q.dead_letter) AS dead_letter,
       coalesce(j.policy, q.policy) AS policy, j.worker, j.notes #>> '{source,queue}' AS source_name,
       (j.notes #>> '{source,id}')::uuid AS source_id,
       (j.notes #>> '{source,created_on}')::timestamptz AS source_created_on,
       (j.notes #>> '{source,retry_count}')::int AS source_retry_count, j.seq, j.live, j.options -> 'trace' AS trace
FROM (
    SELECT id, queue, data, CASE WHEN readiness = 'active' THEN 'active' WHEN readiness = 'ended' THEN 'failed'
                                 WHEN attempt > 0 THEN 'retry' ELSE 'created' END AS state,
           readiness::text, priority, attempt, retry_count, options, key, notes, unique_key, created_on, start_after, started_on,
           CASE WHEN readiness = 'ended' THEN (notes ->> 'failed_on')::timestamptz END AS completed_on, expires_on,
           heartbeat, heartbeat_on, extensions, nullif(notes -> 'error', 'null') AS output, worker, seq, NULL::text AS policy, true AS live
    FROM trioboss.live_job
    UNION ALL
    SELECT id, queue, data, outcome::text, 'ended', priority, attempt, retry_count, options, key, notes, notes ->> 'unique_key', created_on,
           start_after, started_on, completed_on, NULL, NULL, NULL, NULL, output, worker, seq, policy::text, false
    FROM trioboss.archive
) j
LEFT JOIN trioboss.queue q ON q.name = j.queue;

-- Live jobs for plain SQL: INSERT and COPY need no more than a name; a column that is not given has the queue's value.
CREATE VIEW trioboss.job AS SELECT * FROM trioboss.all_jobs WHERE live;

CREATE FUNCTION trioboss.insert_job() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    starts timestamptz := coalesce(NEW.start_after, statement_timestamp());
    overrides jsonb;
    bad text := CASE
        WHEN NEW.state <> 'created' THEN 'state'
        WHEN NEW.attempt <> 0 THEN 'attempt'
        WHEN NEW.retry_count <> 0 THEN 'retry_count'
        WHEN NEW.started_on IS NOT NULL THEN 'started_on'
        WHEN NEW.completed_on IS NOT NULL THEN 'completed_on'
        WHEN NEW.heartbeat_on IS NOT NULL THEN 'heartbeat_on'
        WHEN NEW.worker IS NOT NULL THEN 'worker'
        WHEN NEW.output IS NOT NULL THEN 'output'
        WHEN NEW.progress IS NOT NULL THEN 'progress' END;
BEGIN
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION '%: a job is inserted as created, and was never attempted', bad USING ERRCODE = 'check_violation';
    END IF;
    bad := CASE
        WHEN NOT starts BETWEEN '0001-01-02Z' AND '8999-12-31Z' THEN 'start_after'
        WHEN NOT NEW.created_on BETWEEN '0001-01-02Z' AND '8999-12-31Z' THEN 'created_on'
        WHEN NOT NEW.keep_until BETWEEN '0001-01-02Z' AND '8999-12-31Z' THEN 'keep_until'
        WHEN NOT NEW.singleton_on BETWEEN '0001-01-02' AND '8999-12-31' THEN 'singleton_on'
        WHEN octet_length(NEW.singleton_key) > 1000 THEN 'singleton_key'
        WHEN NEW.unique_until NOT IN ('ended', 'started') THEN 'unique_until' END;
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION '%: this value is out of range', bad USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.dead_letter IS NOT NULL AND NOT EXISTS (SELECT FROM trioboss.queue WHERE name = NEW.dead_letter) THEN
        RAISE EXCEPTION 'dead_letter: queue % does not exist', NEW.dead_letter USING ERRCODE = 'foreign_key_violation';
    END IF;
    overrides := jsonb_strip_nulls(jsonb_build_object(
        'retry_limit', NEW.retry_limit, 'retry_delay', NEW.retry_delay, 'retry_backoff', NEW.retry_backoff,
        'retry_delay_max', NEW.retry_delay_max,
        'retry_jitter', coalesce(NEW.retry_jitter, CASE WHEN NEW.retry_backoff THEN 0.5 WHEN NOT NEW.retry_backoff THEN 0 END),
        'retry_multiplier', NEW.retry_multiplier, 'retry_window', extract(epoch FROM NEW.retry_window), 'expire_in', extract(epoch FROM NEW.expire_in),
        'heartbeat', extract(epoch FROM NEW.heartbeat), 'auto_heartbeat', NEW.auto_heartbeat,
        'max_lease_extensions', NEW.max_lease_extensions, 'delete_after', extract(epoch FROM NEW.delete_after),
        'retention', coalesce(extract(epoch FROM NEW.retention),
            CASE WHEN NEW.keep_until > starts     -- a time before the job can start is no retention
                 THEN extract(epoch FROM NEW.keep_until - greatest(starts, statement_timestamp())) END),
        'dead_letter', NEW.dead_letter, 'trace', NEW.trace));
    NEW.id := coalesce(NEW.id, trioboss.make_id());
    -- No job is sent after now: ages and waits are measured from its send, and a start before the send is a violation.
    NEW.created_on := least(NEW.created_on, statement_timestamp());
    INSERT INTO trioboss.live_job (id, queue, priority, created_on, start_after, key, unique_key, options, data, notes)
    VALUES (NEW.id, NEW.name, coalesce(NEW.priority, 0), NEW.created_on, starts,
            NEW.singleton_key, NEW.unique_until || ':' || coalesce(NEW.singleton_key, ''), nullif(overrides, '{}'), NEW.data,
            CASE WHEN NEW.singleton_on IS NOT NULL
                 THEN jsonb_build_object('singleton_on', NEW.singleton_on AT TIME ZONE 'UTC') END);
    IF NEW.singleton_on IS NOT NULL THEN
        INSERT INTO trioboss.throttle (queue, key, slot, until, job_id)
        VALUES (NEW.name, coalesce(NEW.singleton_key, ''), NEW.singleton_on AT TIME ZONE 'UTC',
                greatest(NEW.singleton_on AT TIME ZONE 'UTC', statement_timestamp()) + interval '1 day', NEW.id);
    END IF;
    RETURN NEW;
END $$;

-- An INSERT into live_job that chooses the common table while the queue gets its own would be rejected, with an error
-- about partitions. So the common table is locked first, which waits for the queue, and keeps others from getting one.
CREATE FUNCTION trioboss.hold_common_table() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE ONLY trioboss.live_job, trioboss.live_job_common IN ROW EXCLUSIVE MODE;    -- as the INSERT does
    RETURN NULL;
END $$;

CREATE TRIGGER hold_common_table BEFORE INSERT ON trioboss.job
FOR EACH STATEMENT EXECUTE FUNCTION trioboss.hold_common_table();

CREATE TRIGGER insert_job INSTEAD OF INSERT ON trioboss.job FOR EACH ROW EXECUTE FUNCTION trioboss.insert_job();

-- The payload of a completion job: what was asked, and what came out.
CREATE FUNCTION trioboss.completion_of(id uuid, queue text, data jsonb, outcome text, response jsonb, created_on timestamptz,
                                       started_on timestamptz, completed_on timestamptz, retry_count integer) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.jsonb_build_object(
        'request', pg_catalog.jsonb_build_object('id', id, 'name', queue, 'data', data), 'response', response,
        'failed', outcome OPERATOR(pg_catalog.=) 'failed', 'state', outcome, 'createdOn', created_on,
        'startedOn', started_on, 'completedOn', completed_on, 'retryCount', retry_count)
$$;

-- Make the tables of the days from the one before `today` to `ahead` days after it. Days are days in UTC. A day that
-- has rows in the default table already gets no table. Returns how many tables it made.
-- A table is made first and attached then, so that no session that settles a job has to wait. Attaching needs a lock on
-- the default table, which readers of it hold: if that takes longer than a moment, the next call makes the rest.
-- Attaching reads the whole default table, and locks it meanwhile. So no table is attached while the default table has
-- more than 16 MB, which happens if tables were made too late. History then goes on in the default table, and
-- find_warnings.sql reports it. `SET history.scan_limit = '100GB'` before a call, at a quiet time, attaches the tables
-- nevertheless.
CREATE FUNCTION trioboss.add_days(today date, ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '50ms'
AS $$
DECLARE
    history text;
    made text;
    day date;
    number integer := 0;
    most bigint := pg_size_bytes(coalesce(nullif(current_setting('history.scan_limit', true), ''), '16MB'));
BEGIN
    IF NOT (today BETWEEN '0002-01-01' AND '8998-01-01' AND ahead BETWEEN 0 AND 366) THEN
        RAISE EXCEPTION 'ahead: tables are made for at most 366 days, and not %', ahead USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOREACH history IN ARRAY ARRAY['archive', 'attempt'] LOOP
        CONTINUE WHEN pg_relation_size(format('trioboss.%I', history || '_default')) > most;
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

-- Drop the table of one day. While it waited for its lock, all later sessions would wait, so it gives up at once: try
-- again later.
-- A day that never got a table is deleted from the default table.
CREATE FUNCTION trioboss.drop_day(history text, day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '50ms' AS $$
DECLARE
    own text := history || to_char(day, '_YYYYMMDD');
BEGIN
    IF history NOT IN ('archive', 'attempt') THEN
        RAISE EXCEPTION '% is not a history table', history USING ERRCODE = 'invalid_parameter_value';
    ELSIF to_regclass(format('trioboss.%I', own)) IS NOT NULL THEN
        -- For streams, which must notice that they missed rows.
        EXECUTE format('INSERT INTO trioboss.deleted_history SELECT $1, xid FROM trioboss.%I ORDER BY xid DESC LIMIT 1 '
                       'ON CONFLICT (history) DO UPDATE SET xid = greatest(deleted_history.xid, EXCLUDED.xid)', own)
        USING history;
        EXECUTE format('DROP TABLE trioboss.%I', own);
    ELSIF history = 'archive' THEN
        DELETE FROM trioboss.archive_default WHERE completed_on >= day::timestamptz AND completed_on < (day + 1)::timestamptz;
    ELSE
        DELETE FROM trioboss.attempt_default WHERE ended_on >= day::timestamptz AND ended_on < (day + 1)::timestamptz;
    END IF;
END $$;

-- Remove jobs that the transaction itself has sent, and no others: the transaction that wrote them is still under way,
-- and they are visible, so it is this one or a part of it. It acts for the owner, so that senders need no right to
-- delete jobs.
CREATE FUNCTION trioboss.drop_sent(queue text, ids uuid[]) RETURNS SETOF uuid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM trioboss.live_job j
    WHERE j.queue = $1 AND j.id = ANY (ids) AND j.attempt = 0 AND pg_xact_status(
        ((pg_current_xact_id()::text::bigint & ~4294967295::bigint) | j.xmin::text::bigint)::text::xid8) = 'in progress'
    RETURNING j.id
$$;

-- The same id twice is one job, also when the first has ended: remove those that the transaction itself has sent, and
-- whose id is in the archive. A job that an operator retries meanwhile is another transaction's, and stays.
CREATE FUNCTION trioboss.drop_if_ended(queue text, ids uuid[]) RETURNS SETOF uuid
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT trioboss.drop_sent($1, ARRAY (SELECT a.id FROM trioboss.archive a WHERE a.id = ANY (ids) AND a.queue = $1))
$$;

-- Return a throttle slot that a send has taken before the policy refused its job. The slot of a job, live or ended,
-- stays.
CREATE FUNCTION trioboss.return_throttle_slot(queue text, taken timestamptz, job uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM trioboss.throttle t
    WHERE t.queue = $1 AND t.slot = $2 AND t.job_id = $3 AND NOT EXISTS (
        SELECT FROM (SELECT j.notes FROM trioboss.live_job j WHERE j.queue = $1 AND j.id = $3
                     UNION ALL
                     SELECT a.notes FROM trioboss.archive a WHERE a.queue = $1 AND a.id = $3) job
        WHERE (job.notes ->> 'singleton_on')::timestamptz = $2)
$$;

-- Functions are for the roles that rights/*.sql grants them to, not for everybody.
REVOKE ALL ON FUNCTION trioboss.insert_job(), trioboss.hold_common_table(), trioboss.completion_of(uuid, text, jsonb, text, jsonb, timestamptz, timestamptz,
                       timestamptz, integer), trioboss.add_days(date, integer), trioboss.drop_day(text, date),
                       trioboss.drop_if_ended(text, uuid[]), trioboss.drop_sent(text, uuid[]),
                       trioboss.return_throttle_slot(text, timestamptz, uuid) FROM PUBLIC;

DO $$ BEGIN PERFORM trioboss.add_days((now() AT TIME ZONE 'UTC')::date, 7); END $$;
