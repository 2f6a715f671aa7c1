-- Live jobs: the hot table. A job lives here until it has ended; then it moves to the archive (0003). Only a failed job
-- of a key_strict_fifo queue stays, because it blocks its key.

-- The thing that a live job waits for, one at a time, in this order (model/states.py has the transitions):
--   deferred  for a time: start_after
--   blocked   for other jobs or a signal (reserved: no statement blocks a job yet)
--   waiting   to be admitted from the backlog of its key (reserved: or of a limit)
--   ready     for nothing: the next claim may take it
--   active    it is leased to a worker
--   ended     it failed, and blocks its key until it is retried or deleted
CREATE TYPE trioboss.readiness AS ENUM ('deferred', 'blocked', 'waiting', 'ready', 'active', 'ended');

-- CACHE 1: numbers that are taken one after the other are in order, across sessions. Order is always seq, never
-- created_on, which is the start of a transaction and the same for all jobs sent in it.
CREATE SEQUENCE trioboss.job_seq CACHE 1;

-- The options by which a job may differ from its queue: known names, each with a value that the queue's column accepts;
-- and `trace`, the trace context of its sender.
-- True, or an error that names the option.
CREATE FUNCTION trioboss.check_job_options(options jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    option record;
    valid boolean;
    allowed text;
BEGIN
    IF jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION 'options: % is not an object', left(options::text, 200) USING ERRCODE = 'check_violation';
    ELSIF pg_column_size(options #> '{}') > 20000 THEN
        RAISE EXCEPTION 'options: they have more than 20000 bytes' USING ERRCODE = 'check_violation', CONSTRAINT = 'job_options';
    END IF;
    FOR option IN SELECT key, value, jsonb_typeof(value) AS type, value #>> '{}' AS text FROM jsonb_each(options) LOOP
        -- The casts are those of the statements that use the option: a value that passes here cannot fail there.
        valid := CASE
            WHEN option.key IN ('retry_delay', 'retry_delay_max', 'delete_after')
                THEN CASE option.type WHEN 'number' THEN option.text::float8 BETWEEN 0 AND 6311520000 END
            WHEN option.key IN ('retry_window', 'expire_in', 'retention')
                THEN CASE option.type WHEN 'number' THEN option.text::float8 > 0 AND option.text::float8 <= 6311520000 END
            WHEN option.key = 'heartbeat'
                THEN CASE option.type WHEN 'number' THEN option.text::float8 BETWEEN 1 AND 6311520000 END
            WHEN option.key = 'retry_jitter'
                THEN CASE option.type WHEN 'number' THEN option.text::float8 BETWEEN 0 AND 1 END
            WHEN option.key = 'retry_multiplier'
                THEN CASE option.type WHEN 'number' THEN option.text::float8 BETWEEN 1 AND 100 END
            WHEN option.key IN ('retry_limit', 'max_lease_extensions')
                THEN CASE WHEN option.type = 'number' AND option.text ~ '^[0-9]{1,10}$'
                     THEN option.text::bigint BETWEEN 0 AND 1000000000 END
            WHEN option.key IN ('retry_backoff', 'auto_heartbeat') THEN option.type = 'boolean'
            WHEN option.key = 'dead_letter' THEN option.type = 'string'
            WHEN option.key = 'trace' THEN option.type = 'object' END;
        -- A claim returns options as text. (A number, too, may have any length: 1.000...)
        CONTINUE WHEN valid AND octet_length(option.value::text) <= CASE option.key WHEN 'trace' THEN 4000 ELSE 400 END;
        allowed := CASE
            WHEN option.key IN ('retry_delay', 'retry_delay_max', 'delete_after') THEN 'a number from 0 to 6311520000'
            WHEN option.key IN ('retry_window', 'expire_in', 'retention') THEN 'a number above 0, up to 6311520000'
            WHEN option.key = 'heartbeat' THEN 'a number from 1 to 6311520000'
            WHEN option.key = 'retry_jitter' THEN 'a number from 0 to 1'
            WHEN option.key = 'retry_multiplier' THEN 'a number from 1 to 100'
            WHEN option.key IN ('retry_limit', 'max_lease_extensions') THEN 'an integer from 0 to 1000000000'
            WHEN option.key IN ('retry_backoff', 'auto_heartbeat') THEN 'true or false'
            WHEN option.key = 'dead_letter' THEN 'the name of a queue'
            WHEN option.key = 'trace' THEN 'an object of at most 4000 bytes' END;
        IF allowed IS NULL THEN
            RAISE EXCEPTION '%: a job has no such option; it has auto_heartbeat, dead_letter, delete_after, expire_in, heartbeat, max_lease_extensions, retention, retry_backoff, retry_delay, retry_delay_max, retry_jitter, retry_limit, retry_multiplier, retry_window, trace', left(option.key, 200)
                USING ERRCODE = 'check_violation', CONSTRAINT = 'job_options';
        END IF;
        RAISE EXCEPTION '%: % is out of range: it must be %', option.key, left(option.value::text, 200), allowed
            USING ERRCODE = 'check_violation', CONSTRAINT = 'job_options';
    END LOOP;
    RETURN true;
END $$;

CREATE DOMAIN trioboss.job_options AS jsonb CHECK (VALUE IS NULL OR trioboss.check_job_options(VALUE));

-- The bytes of a JSON document as text, which is how it leaves the server; or an error if that is too much. A number
-- like 1e131071 has 16 bytes in a row and 131072 as text, and no session can read a value of more than a billion bytes.
-- So a text has at most 256 MB, and at most 1 MB or 32 times what the document has in a row: floating point numbers
-- have 27 times.
CREATE FUNCTION trioboss.text_size(document jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most bigint := least(268435456, greatest(1048576, 32 * pg_column_size(document #> '{}')::bigint));
    size integer;
BEGIN
    BEGIN
        size := octet_length(document::text);
    EXCEPTION WHEN program_limit_exceeded OR out_of_memory THEN
        NULL;
    END;
    IF document IS NULL OR size <= most THEN
        RETURN size;
    END IF;
    RAISE EXCEPTION 'as text this JSON has % bytes: at most % are allowed; a number counts with all its digits',
        coalesce(size::text, 'more than a billion'), most
        USING ERRCODE = 'check_violation', CONSTRAINT = 'text_size';
END $$;

CREATE DOMAIN trioboss.document AS jsonb CHECK (trioboss.text_size(VALUE) >= 0);

-- The document or, if no session could read it, an object that says why. For lists: one row must not hide the others.
CREATE FUNCTION trioboss.readable(document jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM trioboss.text_size(document);
    RETURN document;
EXCEPTION WHEN OTHERS THEN
    RETURN jsonb_build_object('unreadable', left(SQLERRM, 300));
END $$;

-- The notes of a job that statements and programs compute with have the form that our statements write them in. True,
-- or an error that names the note.
CREATE FUNCTION trioboss.check_job_notes(notes jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    source jsonb := notes -> 'source';
    instant constant text := '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d:\d\d(:\d\d)?$';
    bad text := CASE
        WHEN jsonb_typeof(notes) <> 'object' THEN 'notes'
        WHEN NOT coalesce(notes ->> 'failures', '1') ~ '^[0-9]{1,9}$' THEN 'failures'
        WHEN NOT coalesce(notes ->> 'failed_on', '2000-01-01T00:00:00+00:00') ~ instant THEN 'failed_on'
        WHEN NOT coalesce(notes ->> 'singleton_on', '2000-01-01T00:00:00+00:00') ~ instant THEN 'singleton_on'
        WHEN source IS NOT NULL AND (jsonb_typeof(source) <> 'object' OR (
                 jsonb_typeof(source -> 'queue') = 'string' AND source ->> 'id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                 AND source ->> 'created_on' ~ instant AND source ->> 'retry_count' ~ '^[0-9]{1,10}$') IS NOT TRUE)
            THEN 'source'
        -- In the archive: it becomes the unique_key of a job that is queued again.
        WHEN NOT coalesce(notes ->> 'unique_key', 'ended:') ~ '^(ended|started):'
             OR octet_length(notes ->> 'unique_key') > 1010 THEN 'unique_key'
        WHEN NOT coalesce(notes ->> 'redriven', '00000000-0000-0000-0000-000000000000') ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            THEN 'redriven' END;
BEGIN
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION '%: % is not a value of this note of a job', bad, left(notes::text, 200)
            USING ERRCODE = 'check_violation', CONSTRAINT = 'job_notes';
    END IF;
    -- The text of an instant can still be none, as on the 31st of June.
    RETURN coalesce((notes ->> 'failed_on')::timestamptz::trioboss.instant, (notes ->> 'singleton_on')::timestamptz::trioboss.instant,
                    (source ->> 'created_on')::timestamptz::trioboss.instant, now()) IS NOT NULL
       AND coalesce((notes ->> 'singleton_on')::timestamptz::trioboss.instant, now()) IS NOT NULL
       AND coalesce((source ->> 'created_on')::timestamptz::trioboss.instant, now()) IS NOT NULL
       AND coalesce((source ->> 'retry_count')::integer, 0) >= 0
       AND (pg_column_size(notes) <= 2000 OR trioboss.text_size(notes) > 0);
END $$;

CREATE DOMAIN trioboss.job_notes AS jsonb CHECK (VALUE IS NULL OR trioboss.check_job_notes(VALUE));

-- The fault in those values of a job that statements compute with or return; null if there is none. Domains and
-- triggers keep such values out; data of another version, or a damaged page, brings them in.
CREATE FUNCTION trioboss.find_problem(options jsonb, notes jsonb, data jsonb, started_on timestamptz,
                                      heartbeat double precision, heartbeat_on timestamptz, expires_on timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM trioboss.text_size(data);
    PERFORM trioboss.check_job_options(options) WHERE options IS NOT NULL;
    PERFORM trioboss.check_job_notes(notes) WHERE notes IS NOT NULL;
    PERFORM coalesce(heartbeat_on, started_on) + heartbeat * interval '1 s', expires_on - started_on;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN left(SQLERRM, 500);
END $$;

-- The key of a job of send_once or send_singleton, with the state until which no other job may have it: ended or
-- started.
CREATE DOMAIN trioboss.unique_key AS text COLLATE "C"
    CHECK (octet_length(VALUE) <= 1010 AND (starts_with(VALUE, 'ended:') OR starts_with(VALUE, 'started:')));

-- A job stores what is its own; everything else is resolved from its queue when it is used. Fixed-width columns first,
-- the optional ones last: a null costs no space.
CREATE TABLE trioboss.live_job (
    seq           bigint NOT NULL DEFAULT nextval('trioboss.job_seq'),
    created_on    trioboss.instant NOT NULL DEFAULT now(),
    start_after   trioboss.instant NOT NULL DEFAULT now(),
    id            uuid NOT NULL DEFAULT trioboss.make_id(),
    priority      integer NOT NULL DEFAULT 0,
    rank          integer NOT NULL DEFAULT 0,        -- order within its backlog, before seq; the lowest first
    -- The fence: grows with every claim; after 2^30 it begins anew. With started_on it identifies one lease for ever,
    -- even if a crash of the server loses a claim and its number is issued again.
    attempt       trioboss.counter NOT NULL DEFAULT 0,
    retry_count   trioboss.counter NOT NULL DEFAULT 0,
    readiness     trioboss.readiness NOT NULL,
    queue         text COLLATE "C" NOT NULL,
    key           trioboss.key,                      -- singleton_key
    backlog       text COLLATE "C",                  -- where it waits to be admitted: 'key:' || key
    slot          text COLLATE "C",                  -- its policy slot: what its queue allows once (see queued_slot)
    owner         text COLLATE "C",                  -- the backlog of the key that it owns
    unique_key    trioboss.unique_key,               -- of a job of send_once or send_singleton: 'ended:' or 'started:' || key
    -- The terms of its lease, if it is active. They are those of its claim, whatever happens to the queue meanwhile.
    worker        uuid,                              -- null for jobs that were fetched manually
    started_on    trioboss.instant,
    expires_on    trioboss.instant,
    heartbeat     trioboss.seconds,
    heartbeat_on  trioboss.instant,                  -- in no index, so that a heartbeat is a HOT update
    extensions    trioboss.counter,
    options       trioboss.job_options,              -- the options of its queue that it overrides
    size          trioboss.counter,                  -- bytes of its data as text, if they are more than 2000
    data          jsonb,
    -- Values that few jobs have: error, failures and failed_on of its last failure; progress; source of a dead letter;
    -- redriven, the id of the job that failed, of one that was redriven; singleton_on of a throttled job.
    notes         trioboss.job_notes,
    -- The same id twice is one job (P4): a send with the id of a live job is refused. All statements that are given
    -- ids.
    CONSTRAINT live_job_pkey PRIMARY KEY (queue, id) WITH (deduplicate_items = off)
) PARTITION BY LIST (queue);

-- Not compressed, so that a claim finds their size (answer_size) without reading them.
ALTER TABLE trioboss.live_job ALTER COLUMN notes SET STORAGE EXTERNAL;

-- Each index says which statements need it, and which promise of GUARANTEES.md it holds (P1 to P11). Where no promise
-- depends on it, it says what would read how much without it.
-- Entries of these indexes differ, except for versions of one job, which are soon dead. To look for equal ones before
-- each split of a page, in vain, would be 13 % of a claim's instructions: hence deduplicate_items = off.

-- claim.sql: the jobs that can run now, in the order in which they should. The entries that a claim reads are limited,
-- as its comment says: so its cost does not depend on how many jobs wait. poll.sql finds by it ready jobs of which no
-- notification was received (P8).
CREATE INDEX live_job_ready ON trioboss.live_job (queue, priority DESC, seq) WITH (deduplicate_items = off)
    WHERE readiness = 'ready';

-- promote_due.sql, find_next_due.sql and poll.sql: what becomes due next. So dispatchers wait for an instant and do not
-- search, and a poll finds due jobs without a notification (P8).
CREATE INDEX live_job_deferred ON trioboss.live_job (queue, start_after) WHERE readiness = 'deferred';

-- admit.sql and admit_and_claim.sql: the first job of a backlog, whatever its length, in the order of its key (P6).
CREATE INDEX live_job_backlog ON trioboss.live_job (queue, backlog, rank, seq) WITH (deduplicate_items = off)
    WHERE readiness = 'waiting';

-- rescue_leases.sql: all leases, every 1.5 s while there are some, so that those of a killed worker end (P7). By the
-- columns of the primary key, because the planner may use either index to find an active job by its id, and must not
-- walk along all leases for that.
CREATE INDEX live_job_active ON trioboss.live_job (queue, id) WITH (deduplicate_items = off)
    WHERE readiness = 'active';

-- The policies that count queued jobs: one job a policy slot (P5). Our statements insert jobs with ON CONFLICT DO
-- NOTHING, so a job whose policy slot is taken is refused; plain SQL gets an error.
CREATE UNIQUE INDEX live_job_slot ON trioboss.live_job (queue, slot) WHERE slot IS NOT NULL;

-- The policies under which jobs of a key run one at a time: a key has one owner (P5, P6). Only a job whose key has none
-- is admitted, under the admission lock, so a claim never meets a violation here.
-- Also for get_blocked_keys.sql and delete_stored_jobs.sql: failed jobs that block their keys own them.
CREATE UNIQUE INDEX live_job_owner ON trioboss.live_job (queue, owner) WHERE owner IS NOT NULL;

-- send_once ('ended:' || key: one job that has not ended) and send_singleton ('started:' || key: one queued job),
-- whatever the policy of the queue (P5).
CREATE UNIQUE INDEX live_job_unique_key ON trioboss.live_job (queue, unique_key)
    WHERE unique_key IS NOT NULL AND (readiness < 'active' OR (readiness = 'active' AND starts_with(unique_key, 'ended:')));

-- The name of a backlog: 'key:' || key.
CREATE DOMAIN trioboss.backlog AS text COLLATE "C" CHECK (octet_length(VALUE) <= 1010);

-- Backlogs to be checked. A job that joins a backlog leaves a row here with its priority; a job that no longer owns its
-- key leaves one without. Only claims answer these rows, under the admission lock (lock_admission.sql): they admit the
-- first job of the backlog, and delete the rows that were answered. (Rows of deleted queues are deleted unanswered.)
-- Rows are only inserted and deleted, never updated, so no session waits for an open transaction of a sender.
-- Invariant: a backlog that has a waiting job and no owner has a row here. The change that makes it so commits one, and
-- a claim that admits no job of such a backlog leaves one.
CREATE TABLE trioboss.backlog_check (
    seq       bigint NOT NULL DEFAULT nextval('trioboss.job_seq'),
    priority  integer,                               -- null: the owner left
    queue     text COLLATE "C" NOT NULL,
    backlog   trioboss.backlog NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- admit.sql and admit_and_claim.sql: the next checks in the order of claims, from any position on. The order is
-- ascending in both columns, so that a position is one row comparison: no claim reads a check twice (P5, P6).
CREATE INDEX backlog_check_order ON trioboss.backlog_check (queue, (-priority::bigint), seq) WITH (deduplicate_items = off);

-- Throttle slots. A job occupies its slot even after it has ended, unless it was cancelled or deleted.
CREATE TABLE trioboss.throttle (
    queue       text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    slot        trioboss.instant NOT NULL,
    until       trioboss.instant NOT NULL,
    job_id      uuid NOT NULL,
    PRIMARY KEY (queue, key, slot)
);

-- cancel.sql, delete_job.sql, delete_queued_jobs.sql, delete_active_jobs.sql, delete_stored_jobs.sql, erase_jobs.sql
-- and the function return_throttle_slot: the slot of one job, which becomes free with it. No promise: each would read
-- all throttle slots of a queue, or of all queues.
CREATE INDEX throttle_job ON trioboss.throttle (job_id);

-- prune.sql: throttle slots that are over, among many that are not. No promise: it would read all of them every hour.
CREATE INDEX throttle_until ON trioboss.throttle (until);

-- Take the throttle slot of this moment for a job; or, with `next`, the one after it if that is taken. Slots are
-- counted from the epoch. Returns the slot, or null if it is taken. It acts for the owner: senders cannot read who
-- throttles what.
CREATE FUNCTION trioboss.take_throttle_slot(queue text, key text, seconds trioboss.seconds, next boolean, moment timestamptz, job uuid)
RETURNS timestamptz LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    length interval := seconds * interval '1 s';
    first timestamptz := to_timestamp(seconds * floor(extract(epoch FROM moment)::float8 / seconds));
    taken timestamptz;
BEGIN
    INSERT INTO trioboss.throttle AS t (queue, key, slot, until, job_id) VALUES (queue, key, first, first + length, job)
    ON CONFLICT DO NOTHING RETURNING t.slot INTO taken;
    IF taken IS NULL AND next THEN
        INSERT INTO trioboss.throttle AS t (queue, key, slot, until, job_id)
        VALUES (queue, key, first + length, first + 2 * length, job)
        ON CONFLICT DO NOTHING RETURNING t.slot INTO taken;
    END IF;
    RETURN taken;
END $$;

-- The readiness of a job that waits for nothing but its time and its backlog. A job that owns its key does not wait in
-- the backlog: statements pass nullif(backlog, owner). Without times the time has come.
CREATE FUNCTION trioboss.queued_readiness(start_after timestamptz, now timestamptz, backlog text) RETURNS trioboss.readiness
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN start_after OPERATOR(pg_catalog.>) now THEN 'deferred'::trioboss.readiness
                WHEN backlog IS NOT NULL THEN 'waiting'::trioboss.readiness ELSE 'ready'::trioboss.readiness END
$$;

-- The policy slot of a queued job; null where the policy does not count it. One job may have each slot:
--   short      created:KEY while it was never attempted
--   stately    created:KEY while it was never attempted, retry:KEY while it waits for another attempt
--   exclusive  any:KEY, also while it is active
-- Under short and stately an active job has no policy slot; singleton and key_strict_fifo have none at all. They and
-- stately have owners of keys instead: a job owns its key from its admission until its attempt ends, under
-- key_strict_fifo until it completes, is cancelled or deleted.
CREATE FUNCTION trioboss.queued_slot(policy text, key text, attempt integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN policy OPERATOR(pg_catalog.=) 'exclusive' THEN 'any:'
                WHEN policy OPERATOR(pg_catalog.=) 'stately' AND attempt OPERATOR(pg_catalog.>) 0 THEN 'retry:'
                WHEN policy OPERATOR(pg_catalog.=) 'stately'
                     OR (policy OPERATOR(pg_catalog.=) 'short' AND attempt OPERATOR(pg_catalog.=) 0) THEN 'created:'
           END OPERATOR(pg_catalog.||) COALESCE(key, '')
$$;

-- The backlog of a key, where jobs of a key run one at a time. (Functions without a search_path of their own are
-- inlined.)
CREATE FUNCTION trioboss.key_backlog(keyed boolean, key text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN keyed THEN 'key:' OPERATOR(pg_catalog.||) COALESCE(key, '') END
$$;

-- The order within a backlog: under strict FIFO priorities do not count there.
CREATE FUNCTION trioboss.backlog_rank(policy text, priority integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN policy OPERATOR(pg_catalog.=) 'key_strict_fifo' THEN 0
                ELSE OPERATOR(pg_catalog.-) GREATEST(priority, -2147483647) END
$$;

-- The owner of a job that is queued again after an attempt: under strict FIFO it keeps its key.
CREATE FUNCTION trioboss.kept_owner(policy text, owner text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN policy OPERATOR(pg_catalog.=) 'key_strict_fifo' THEN owner END
$$;

-- About how many bytes a job has in the answer of a claim. Data may be compressed, so its size is measured when it is
-- written; below 2000 bytes it never is.
CREATE FUNCTION trioboss.answer_size(size integer, data jsonb, options jsonb, notes jsonb) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT COALESCE(size, pg_catalog.pg_column_size(data), 0) OPERATOR(pg_catalog.+)
           COALESCE(pg_catalog.pg_column_size(options), 0) OPERATOR(pg_catalog.+) COALESCE(pg_catalog.pg_column_size(notes), 0)
$$;

-- The first of these jobs whose sizes add up to no more than `most`; at least one.
CREATE FUNCTION trioboss.first_fitting(jobs tid[], sizes integer[], most bigint) RETURNS tid[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jobs[1:greatest(count(*), 1)::int]
    FROM (SELECT sum(size) OVER (ORDER BY number) AS total FROM unnest(sizes) WITH ORDINALITY s (size, number)) s
    WHERE coalesce(total, 0) <= most
$$;

-- The delay before the next attempt, in seconds, after so many failures; `chance` (0 to 1) is the random part.
CREATE FUNCTION trioboss.retry_delay(delay double precision, backoff boolean, longest double precision,
                                     jitter double precision, multiplier double precision, failures integer,
                                     chance double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN backoff
                THEN LEAST(longest, CASE WHEN delay OPERATOR(pg_catalog.>) 0 THEN delay ELSE 1 END OPERATOR(pg_catalog.*)
                                    (multiplier OPERATOR(pg_catalog.^) LEAST(16, failures)) OPERATOR(pg_catalog.*)
                                    (1 OPERATOR(pg_catalog.-) jitter OPERATOR(pg_catalog.+) (jitter OPERATOR(pg_catalog.*) chance)))
                ELSE delay OPERATOR(pg_catalog.*)
                     (1 OPERATOR(pg_catalog.-) jitter OPERATOR(pg_catalog.+) (jitter OPERATOR(pg_catalog.*) chance)) END
$$;

-- The lock that makes the order of a key the order of commit: senders of one key wait for each other, from the send to
-- the end of their transaction. 1024 locks a queue, because the lock table of the server is finite.
CREATE FUNCTION trioboss.key_lock(queue text, key text, seed bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT trioboss.lock_number('key/' OPERATOR(pg_catalog.||) queue OPERATOR(pg_catalog.||) '/' OPERATOR(pg_catalog.||)
        (pg_catalog.hashtextextended(key, 0) OPERATOR(pg_catalog.&) 1023::pg_catalog.int8)::pg_catalog.text, seed)
$$;

-- Add a backlog check when a job stops owning its key, or when a deferred or blocked job joins a backlog, whatever
-- statement does that. (Statements that insert jobs add the checks themselves: one for each job, bulk loads one for all
-- jobs of a backlog and a priority.)
-- When an owner leaves, the check is added without asking whether another job waits. A job that joins at the same
-- moment may not be visible to this transaction; and a claim may already have answered the check of that job, when the
-- key still had its owner. Without this check nothing would admit it.
CREATE FUNCTION trioboss.add_backlog_check() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (OLD.owner IS NOT NULL AND OLD.owner IS DISTINCT FROM NEW.owner) THEN
        INSERT INTO trioboss.backlog_check (queue, backlog) VALUES (OLD.queue, OLD.owner);
    ELSE
        INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
        VALUES (NEW.seq, NEW.priority, NEW.queue, NEW.backlog);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER owner_deleted AFTER DELETE ON trioboss.live_job FOR EACH ROW
WHEN (OLD.owner IS NOT NULL) EXECUTE FUNCTION trioboss.add_backlog_check();

CREATE TRIGGER backlog_changed AFTER UPDATE OF readiness, owner ON trioboss.live_job FOR EACH ROW
WHEN ((OLD.owner IS NOT NULL AND OLD.owner IS DISTINCT FROM NEW.owner)
      OR (OLD.readiness < 'waiting' AND NEW.readiness = 'waiting'))
EXECUTE FUNCTION trioboss.add_backlog_check();

-- For plain SQL that changes the readiness, the key or the queue of a job. This function then
--   sets policy slot, backlog and owner, so that the policy holds, or its unique index refuses the change;
--   adds the checks of the backlogs concerned;
--   gives an attempt that does not begin with a claim a number, and a lease that expires.
-- It makes no job the owner of a key. A claim that admits another job of the key would wait at the unique index for the
-- end of this transaction. Such a job waits in its backlog until a claim admits it.
CREATE FUNCTION trioboss.follow_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    q trioboss.queue;
BEGIN
    SELECT * INTO q FROM trioboss.queue WHERE name = NEW.queue;
    IF NEW.readiness = 'ended' AND q.policy <> 'key_strict_fifo' THEN
        RAISE EXCEPTION 'readiness: only a failed job of a key_strict_fifo queue stays as ended: delete the job instead'
            USING ERRCODE = 'check_violation';
    END IF;
    NEW.backlog := trioboss.key_backlog(q.keyed, NEW.key);
    IF NEW.readiness = 'waiting' AND NEW.backlog IS NULL THEN
        NEW.readiness := 'ready';
    ELSIF NEW.readiness >= 'ready' AND (OLD.owner IS NOT DISTINCT FROM NEW.backlog AND OLD.queue = NEW.queue) IS NOT TRUE
          AND NEW.backlog IS NOT NULL THEN
        IF NEW.readiness <> 'ready' THEN
            RAISE EXCEPTION 'readiness: only a claim makes a job of queue % the owner of its key', NEW.queue
                USING ERRCODE = 'check_violation', HINT = 'Set readiness to waiting: the next claim admits the job.';
        END IF;
        NEW.readiness := 'waiting';
    END IF;
    IF NEW.readiness = 'active' AND OLD.readiness <> 'active' THEN
        NEW.attempt := greatest(NEW.attempt, (OLD.attempt & 1073741823) + 1);
        NEW.started_on := statement_timestamp();
        NEW.expires_on := statement_timestamp() + q.expire_in * interval '1 s';
    ELSIF NEW.readiness <> 'active' THEN
        NEW.worker := NULL;
        NEW.expires_on := NULL;
        NEW.heartbeat := NULL;
        NEW.heartbeat_on := NULL;
    END IF;
    NEW.slot := CASE WHEN NEW.readiness < 'active' OR q.policy = 'exclusive'
                     THEN trioboss.queued_slot(q.policy, NEW.key, NEW.attempt) END;
    NEW.owner := CASE WHEN NEW.readiness >= 'ready'
                        OR (NEW.readiness = 'deferred' AND trioboss.kept_owner(q.policy, OLD.owner) = NEW.backlog) THEN NEW.backlog END;
    IF OLD.owner IS NOT NULL AND OLD.owner IS DISTINCT FROM NEW.owner THEN
        -- Here, too: backlog_changed fires only for statements that name the owner or the readiness.
        INSERT INTO trioboss.backlog_check (queue, backlog) VALUES (OLD.queue, OLD.owner);
    END IF;
    IF NEW.readiness = 'waiting' AND (OLD.readiness >= 'waiting' OR OLD.queue <> NEW.queue) THEN
        -- backlog_changed does it for jobs that waited for something else.
        INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
        VALUES (NEW.seq, NEW.priority, NEW.queue, NEW.backlog);
    END IF;
    RETURN NEW;
END $$;

-- For changes by plain SQL. The statements of trioboss set all these columns themselves, and the condition is false for
-- nearly all that they write, because a claim must not pay for a function. Two kinds of jobs of strict FIFO fire this
-- trigger, and the function leaves them as they are: one that is deferred and owns its key (retry_failed.sql,
-- update_jobs.sql, reschedule.sql), and one that is quarantined while it is queued and owns its key
-- (quarantine_unsound.sql).
CREATE TRIGGER follow_readiness BEFORE UPDATE OF readiness ON trioboss.live_job FOR EACH ROW
WHEN ((NEW.readiness = 'active') <> (NEW.expires_on IS NOT NULL)
      OR (NEW.readiness = 'ended' AND OLD.readiness <> 'active')
      OR (NEW.readiness IN ('ready', 'active') AND NEW.backlog IS NOT NULL AND NEW.owner IS NULL)
      OR (NEW.readiness IN ('deferred', 'blocked', 'waiting') AND NEW.owner IS NOT NULL)
      OR (NEW.readiness = 'waiting' AND NEW.backlog IS NULL))
EXECUTE FUNCTION trioboss.follow_change();

CREATE TRIGGER follow_key BEFORE UPDATE OF queue, key ON trioboss.live_job FOR EACH ROW
WHEN ((OLD.queue, OLD.key) IS DISTINCT FROM (NEW.queue, NEW.key)) EXECUTE FUNCTION trioboss.follow_change();

-- The rank in the backlog follows a priority that plain SQL has changed. update_jobs.sql and reschedule.sql set both
-- columns. Under key_strict_fifo the rank does not depend on the priority: there they fire this trigger, and it changes
-- nothing.
CREATE FUNCTION trioboss.follow_priority() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.rank := trioboss.backlog_rank((SELECT policy FROM trioboss.queue WHERE name = NEW.queue), NEW.priority);
    IF NEW.readiness = 'waiting' AND NEW.rank <> OLD.rank THEN
        INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
        VALUES (NEW.seq, NEW.priority, NEW.queue, NEW.backlog);
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER follow_priority BEFORE UPDATE OF priority ON trioboss.live_job FOR EACH ROW
WHEN (NEW.priority <> OLD.priority AND NEW.rank = OLD.rank AND NEW.backlog IS NOT NULL)
EXECUTE FUNCTION trioboss.follow_priority();

-- Fill in a job that is inserted without its readiness, with the values that send.sql would give it. Such jobs come
-- from plain SQL through the view job, and from statements that make jobs for another queue (dead letters, completion
-- jobs).
-- For a role that may not update jobs, and therefore only sends, every job is filled in like this, whatever the role
-- has written: it cannot get around a policy. A role that may update jobs can: a row that it inserts with a readiness
-- stays as it is, because our own statements insert such rows, and must not pay for a function (see STATEMENTS in
-- model/states.py).
CREATE FUNCTION trioboss.fill_in_job() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    q trioboss.queue;
    lock bigint;
    sent_by_statement boolean := NEW.readiness IS NOT NULL;
BEGIN
    IF NOT has_table_privilege('trioboss.live_job', 'UPDATE') THEN
        NEW.notes := CASE WHEN NEW.notes ? 'singleton_on' THEN jsonb_build_object('singleton_on', NEW.notes -> 'singleton_on') END;
        NEW.owner := NULL;
        NEW.created_on := least(NEW.created_on, statement_timestamp());    -- as insert_job does
        IF NEW.unique_key NOT IN ('ended:' || coalesce(NEW.key, ''), 'started:' || coalesce(NEW.key, '')) THEN
            RAISE EXCEPTION 'unique_key: % does not belong to the key of the job', NEW.unique_key
                USING ERRCODE = 'check_violation', CONSTRAINT = 'job_unique_key';
        END IF;
    END IF;
    SELECT * INTO q FROM trioboss.queue WHERE name = NEW.queue;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'queue % does not exist', NEW.queue USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF q.policy = 'key_strict_fifo' AND NEW.key IS NULL THEN
        RAISE EXCEPTION 'key_strict_fifo queues require a singleton_key' USING ERRCODE = 'not_null_violation';
    END IF;
    IF q.policy = 'key_strict_fifo' AND q.commit_order THEN
        lock := trioboss.key_lock(NEW.queue, NEW.key, (SELECT seed FROM trioboss.lock_seed));
        -- A worker never waits for an open transaction of another session: beside one, a dead letter joins without the
        -- lock.
        IF NEW.notes ? 'source' THEN
            PERFORM pg_try_advisory_xact_lock(lock);
        ELSE
            PERFORM pg_advisory_xact_lock(lock);
        END IF;
        NEW.seq := nextval('trioboss.job_seq');
    END IF;
    NEW.rank := trioboss.backlog_rank(q.policy, NEW.priority);
    NEW.backlog := trioboss.key_backlog(q.keyed, NEW.key);
    NEW.slot := trioboss.queued_slot(q.policy, NEW.key, NEW.attempt);
    NEW.readiness := trioboss.queued_readiness(NEW.start_after, statement_timestamp(), NEW.backlog);
    IF NEW.readiness = 'waiting' THEN
        INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
        VALUES (NEW.seq, NEW.priority, NEW.queue, NEW.backlog);
    END IF;
    IF NOT sent_by_statement THEN
        PERFORM trioboss.notify(NEW.queue);
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER fill_in_job BEFORE INSERT ON trioboss.live_job FOR EACH ROW
WHEN (NEW.readiness IS NULL OR NOT has_table_privilege('trioboss.live_job'::regclass, 'UPDATE'))
EXECUTE FUNCTION trioboss.fill_in_job();

-- Measure the data of a job, and refuse what no session could read.
CREATE FUNCTION trioboss.measure_data() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.size := trioboss.text_size(NEW.data);
    IF NEW.size <= 2000 THEN
        NEW.size := NULL;
    END IF;
    RETURN NEW;
END $$;

-- The condition writes small data as text, which takes less than 1 us: fewer bytes in the row do not mean fewer as
-- text.
CREATE TRIGGER measure_data BEFORE INSERT ON trioboss.live_job FOR EACH ROW
WHEN (pg_column_size(NEW.data) > 2000 OR octet_length(NEW.data::text) > 2000) EXECUTE FUNCTION trioboss.measure_data();

CREATE TRIGGER measure_new_data BEFORE UPDATE OF data ON trioboss.live_job FOR EACH ROW
WHEN (OLD.size IS NOT NULL OR pg_column_size(NEW.data) > 2000 OR octet_length(NEW.data::text) > 2000)
EXECUTE FUNCTION trioboss.measure_data();

-- The live jobs of all queues that have no table of their own.
CREATE TABLE trioboss.live_job_common (LIKE trioboss.live_job INCLUDING DEFAULTS INCLUDING STORAGE)
WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
      autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE trioboss.live_job ATTACH PARTITION trioboss.live_job_common DEFAULT;

-- A table that is made for one queue, day or load has the rights of its model, and no others.
CREATE FUNCTION trioboss.copy_rights(model regclass, made regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT a.privilege_type AS what, a.grantee FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = model AND a.grantee <> c.relowner
        UNION ALL
        SELECT a.privilege_type || format(' (%s)', string_agg(quote_ident(t.attname), ', ')), a.grantee
        FROM pg_attribute t, aclexplode(t.attacl) a
        WHERE t.attrelid = model AND NOT t.attisdropped
        GROUP BY a.privilege_type, a.grantee
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.what, made,
            CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END);
    END LOOP;
END $$;

-- Run a command that needs an exclusive lock. A session that waits for an exclusive lock blocks all later ones, so this
-- waits at most 50 ms at a time and lets others run in between, until `timeout`.
CREATE FUNCTION trioboss.run_between_others(command text, timeout interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + coalesce(nullif(timeout, interval '0'), interval '10 s');
BEGIN
    LOOP
        BEGIN
            EXECUTE command;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > deadline THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.3 + 0.4 * random());
    END LOOP;
END $$;

-- A table of its own for a queue. Attaching scans live_job_common for jobs of that name, so a queue gets
-- its table when it is created and never later. It waits for as long as the session's lock_timeout says, or 10 s.
-- Jobs of that name are those of a queue that was deleted while their sends were open: they are gone with it. They are
-- deleted under the lock that attaching needs, in the same try: a lock on live_job_common that outlived a try would
-- keep out another queue that gets its table, for as long as that one keeps out this.
CREATE FUNCTION trioboss.add_job_table(queue text, table_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF table_name !~ '^j[0-9a-f]{32}$' THEN
        RAISE EXCEPTION '% is not a table of one queue', table_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format(
        'CREATE TABLE trioboss.%I (LIKE trioboss.live_job INCLUDING DEFAULTS INCLUDING STORAGE) '
        'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, '
        'autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)', table_name);
    PERFORM trioboss.run_between_others(
        format('LOCK TABLE ONLY trioboss.live_job IN SHARE UPDATE EXCLUSIVE MODE; '
               'LOCK TABLE trioboss.live_job_common; '
               'DELETE FROM trioboss.live_job_common WHERE queue = %2$L; '
               'ALTER TABLE trioboss.live_job ATTACH PARTITION trioboss.%1$I FOR VALUES IN (%2$L)', table_name, queue),
        current_setting('lock_timeout')::interval);
    PERFORM trioboss.copy_rights('trioboss.live_job_common', format('trioboss.%I', table_name));
END $$;

CREATE FUNCTION trioboss.drop_job_table(table_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF table_name !~ '^j[0-9a-f]{32}$' THEN
        RAISE EXCEPTION '% is not a table of one queue', table_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM trioboss.run_between_others(
        format('DROP TABLE trioboss.%I', table_name), current_setting('lock_timeout')::interval);
END $$;

-- Prepare the tables for a queue whose row this transaction has written: remove what an older queue of that name left,
-- because a send was open while it was deleted, and make its own table if it has one.
-- The row comes first, whoever writes to a queue and to the tables of jobs (copy_completions.sql, delete_queue): a
-- session that waits for the row must not hold a table for which the owner of the row waits.
CREATE FUNCTION trioboss.set_up_queue(queue text, table_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF table_name = 'live_job_common' THEN
        DELETE FROM trioboss.live_job_common j WHERE j.queue = set_up_queue.queue;
    ELSE
        PERFORM trioboss.add_job_table(queue, table_name);
    END IF;
    DELETE FROM trioboss.backlog_check c WHERE c.queue = set_up_queue.queue;
    DELETE FROM trioboss.throttle t WHERE t.queue = set_up_queue.queue;
END $$;

-- Make a queue: for plain SQL. `options` are those of the method create_queue, as the columns of the table queue have
-- them; durations are numbers of seconds. Returns whether it was made: false if it exists and has these options
-- already.
CREATE FUNCTION trioboss.create_queue(name text, options jsonb DEFAULT '{}') RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known constant text[] := ARRAY['policy', 'partition', 'dead_letter', 'warning_queue_size', 'retry_limit', 'retry_delay',
        'retry_backoff', 'retry_delay_max', 'retry_jitter', 'retry_multiplier', 'retry_window', 'expire_in', 'heartbeat',
        'auto_heartbeat', 'max_lease_extensions', 'commit_order', 'retention', 'delete_after', 'keep_completed'];
    given jsonb := coalesce(options, '{}');
    unknown text;
    made trioboss.queue;
    existing trioboss.queue;
BEGIN
    IF jsonb_typeof(given) <> 'object' THEN
        RAISE EXCEPTION 'options: % is not an object', left(given::text, 200) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    unknown := (SELECT min(key) FROM jsonb_object_keys(given) key WHERE key <> ALL (known));
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION '%: a queue has no such option; it has %', left(unknown, 200), array_to_string(known, ', ')
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF name IS NULL OR starts_with(name, '__state__completed__') OR length(name) > 200 THEN
        RAISE EXCEPTION '% is not a name for a queue', coalesce(left(name, 300), 'NULL') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- As the method does: other names of two policies, and without jitter jobs that failed together are retried
    -- together.
    given := given || CASE given ->> 'policy' WHEN 'debounced' THEN '{"policy": "short"}'
                                              WHEN 'singleton_strict_fifo' THEN '{"policy": "key_strict_fifo"}' ELSE '{}' END::jsonb;
    IF (given ->> 'retry_backoff')::boolean AND given ->> 'retry_jitter' IS NULL THEN
        given := given || '{"retry_jitter": 0.5}';
    END IF;
    given := given || jsonb_build_object('name', name, 'table_name',
        CASE WHEN (given ->> 'partition')::boolean THEN 'j' || md5(name) ELSE 'live_job_common' END);
    EXECUTE (SELECT format('INSERT INTO trioboss.queue (%1$s) SELECT %1$s FROM jsonb_populate_record(NULL::trioboss.queue, $1) '
                           'ON CONFLICT DO NOTHING RETURNING *', string_agg(quote_ident(key), ', '))
             FROM jsonb_object_keys(given) key)
    INTO made USING given;
    IF made.name IS NULL THEN
        SELECT * INTO existing FROM trioboss.queue q WHERE q.name = create_queue.name;
        IF jsonb_populate_record(existing, given - 'table_name') IS DISTINCT FROM existing THEN
            RAISE EXCEPTION 'queue % exists with other options', name USING ERRCODE = 'duplicate_object';
        END IF;
        RETURN false;
    END IF;
    PERFORM trioboss.set_up_queue(made.name, made.table_name);
    RETURN true;
END $$;

-- Remove a queue and its live jobs, and the queue of its completion jobs; the archive keeps the ended ones. Returns the
-- names that were removed. Refused while the queue is a dead letter queue of another one.
CREATE FUNCTION trioboss.delete_queue(queue text) RETURNS SETOF text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone record;
BEGIN
    -- A table is dropped before anything is deleted from live_job_common, which dropping locks, too: see add_job_table.
    FOR gone IN
        WITH deleted AS (
            DELETE FROM trioboss.queue q WHERE q.name IN (queue, '__state__completed__' || queue)
            RETURNING q.name, q.partition, q.table_name
        )
        SELECT * FROM deleted ORDER BY partition DESC
    LOOP
        IF gone.partition THEN
            PERFORM trioboss.drop_job_table(gone.table_name);
        ELSE
            DELETE FROM trioboss.live_job_common j WHERE j.queue = gone.name;
        END IF;
        DELETE FROM trioboss.backlog_check c WHERE c.queue = gone.name;
        DELETE FROM trioboss.throttle t WHERE t.queue = gone.name;
        DELETE FROM trioboss.idle_dispatcher i WHERE i.queue = gone.name;
        RETURN NEXT gone.name;
    END LOOP;
END $$;

-- Functions are for the roles that rights/*.sql grants them to, not for everybody.
REVOKE ALL ON FUNCTION trioboss.check_job_options(jsonb), trioboss.check_job_notes(jsonb),
    trioboss.text_size(jsonb), trioboss.readable(jsonb), trioboss.find_problem(jsonb, jsonb, jsonb, timestamptz, double precision, timestamptz, timestamptz),
    trioboss.take_throttle_slot(text, text, trioboss.seconds, boolean, timestamptz, uuid),
    trioboss.queued_readiness(timestamptz, timestamptz, text),
    trioboss.queued_slot(text, text, integer), trioboss.key_backlog(boolean, text), trioboss.backlog_rank(text, integer), trioboss.kept_owner(text, text), trioboss.first_fitting(tid[], integer[], bigint), trioboss.answer_size(integer, jsonb, jsonb, jsonb), trioboss.measure_data(),
    trioboss.retry_delay(double precision, boolean, double precision, double precision, double precision, integer,
                         double precision),
    trioboss.key_lock(text, text, bigint), trioboss.add_backlog_check(), trioboss.follow_change(), trioboss.follow_priority(), trioboss.fill_in_job(),
    trioboss.copy_rights(regclass, regclass), trioboss.run_between_others(text, interval),
    trioboss.add_job_table(text, text), trioboss.drop_job_table(text), trioboss.set_up_queue(text, text),
    trioboss.create_queue(text, jsonb), trioboss.delete_queue(text) FROM PUBLIC;
