-- Queues: their policies, and the options of the jobs that do not override them.

-- IF NOT EXISTS would need the right to create schemas even where the schema exists. The comment tells
-- 0001_queues.down.sql which schemas were made here.
DO $$ BEGIN
    IF to_regnamespace('"trioboss"') IS NULL THEN
        CREATE SCHEMA "trioboss";
        COMMENT ON SCHEMA "trioboss" IS 'made by trioboss';
    END IF;
END $$;

-- Every value that a role may write is bounded, so that no later arithmetic on it can overflow. Domains are checked
-- when a value is written; a CHECK of the job table would be parsed anew by every statement that writes a job.
CREATE DOMAIN trioboss.instant AS timestamptz CHECK (VALUE >= '0001-01-02Z' AND VALUE < '9000-01-01Z');
CREATE DOMAIN trioboss.seconds AS double precision CHECK (VALUE >= 0 AND VALUE <= 6311520000);   -- 200 years
CREATE DOMAIN trioboss.fraction AS double precision CHECK (VALUE BETWEEN 0 AND 1);
CREATE DOMAIN trioboss.multiplier AS double precision CHECK (VALUE BETWEEN 1 AND 100);
CREATE DOMAIN trioboss.amount AS integer CHECK (VALUE BETWEEN 0 AND 1000000000);
CREATE DOMAIN trioboss.counter AS integer CHECK (VALUE >= 0);
CREATE DOMAIN trioboss.histogram AS integer[] CHECK (array_ndims(VALUE) = 1 AND cardinality(VALUE) <= 100
    AND array_position(VALUE, NULL) IS NULL AND 0 <= ALL (VALUE) AND 1000000000 >= ALL (VALUE));
CREATE DOMAIN trioboss.key AS text COLLATE "C" CHECK (octet_length(VALUE) <= 1000);    -- an index entry has at most 2704 bytes

CREATE TABLE trioboss.version (
    version     integer NOT NULL PRIMARY KEY,
    applied_on  timestamptz NOT NULL DEFAULT now(),
    -- The oldest programs that also work with this version, by the version that they need; null: none older. A program
    -- that starts in the middle of a deployment accepts a newer schema by it.
    compatible  integer
);

-- The seed of all advisory locks of this schema. Lock numbers are visible to every role of the database in pg_locks
-- only while they are held; without the seed a role that has no rights here cannot compute and take them beforehand.
CREATE TABLE trioboss.lock_seed (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    seed  bigint NOT NULL
);
INSERT INTO trioboss.lock_seed (seed) SELECT ('x' || substr(replace(gen_random_uuid()::text, '-', ''), 17))::bit(64)::bigint;

-- The number of the advisory lock of that name. The seed is an argument, because a function that reads a table is
-- not inlined, and a call of it costs more than most statements.
CREATE FUNCTION trioboss.lock_number(name text, seed bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT pg_catalog.hashtextextended(name, seed) $$;

-- Notify all bosses when the transaction commits; false if that is not possible. A notification is a hint: where the
-- role may not send one, or the server's queue of notifications is nearly full because some session does not read, the
-- transaction goes on without. (A commit fails if the queue is full. Its last tenth is left to others.)
CREATE FUNCTION trioboss.notify(payload text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_notification_queue_usage() > 0.9 THEN
        RETURN false;
    END IF;
    PERFORM pg_notify('trioboss', payload);
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN false;
END $$;

-- A new UUIDv7, as model/ids.py makes them: its order is that of the making, to a microsecond. 48 bits are
-- milliseconds, the next 12 bits the fraction of one; 512/125 is 4096/1000.
CREATE FUNCTION trioboss.make_id() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT (pg_catalog.overlay(
                pg_catalog.lpad(pg_catalog.to_hex(
                    (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8
                        OPERATOR(pg_catalog.*) 512 OPERATOR(pg_catalog./) 125), 15, '0'),
                '7', 13, 0)
            OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.gen_random_uuid()::pg_catalog.text, 20))::pg_catalog.uuid
$$;

-- Revisions are unique in the schema: a queue that was deleted and created again never has an old one.
CREATE SEQUENCE trioboss.queue_revision;

-- For the history, where four bytes are better than a text. The policies are those of the CHECK of queue.
CREATE TYPE trioboss.policy AS ENUM ('standard', 'short', 'singleton', 'stately', 'exclusive', 'key_strict_fifo');

-- Every send reads this table, so no column may change often. Durations are in seconds.
CREATE TABLE trioboss.queue (
    name                 text COLLATE "C" PRIMARY KEY,
    policy               text NOT NULL DEFAULT 'standard',
    partition            boolean NOT NULL DEFAULT false,
    table_name           text NOT NULL DEFAULT 'live_job_common',    -- the table that holds its live jobs
    revision             bigint NOT NULL DEFAULT nextval('trioboss.queue_revision'),    -- new with every change
    paused               boolean NOT NULL DEFAULT false,
    on_complete          boolean NOT NULL DEFAULT false,             -- ended jobs are copied to a completion queue
    dead_letter          text COLLATE "C" REFERENCES trioboss.queue (name),
    warning_queue_size   trioboss.amount,
    retry_limit          trioboss.amount NOT NULL DEFAULT 2,
    retry_delay          trioboss.seconds NOT NULL DEFAULT 0,
    retry_backoff        boolean NOT NULL DEFAULT false,
    retry_delay_max      trioboss.seconds,
    retry_jitter         trioboss.fraction NOT NULL DEFAULT 0,       -- the random part of a delay
    retry_multiplier     trioboss.multiplier NOT NULL DEFAULT 2,     -- of the delay, after each failure, with backoff
    retry_window         trioboss.seconds,
    expire_in            trioboss.seconds NOT NULL DEFAULT 900,
    heartbeat            trioboss.seconds,
    auto_heartbeat       boolean NOT NULL DEFAULT true,
    max_lease_extensions trioboss.amount NOT NULL DEFAULT 3,
    commit_order         boolean NOT NULL DEFAULT true,
    retention            trioboss.seconds NOT NULL DEFAULT 1209600,  -- 14 days
    delete_after         trioboss.seconds NOT NULL DEFAULT 604800,   -- 7 days
    keep_completed       boolean NOT NULL DEFAULT true,
    label                text,                                       -- the app that declares it; null: none
    created_on           trioboss.instant NOT NULL DEFAULT now(),
    updated_on           trioboss.instant NOT NULL DEFAULT now(),
    -- Keyed: at most one job of a key is active. Its jobs wait in the backlog of their key until they are admitted.
    keyed boolean GENERATED ALWAYS AS (policy IN ('singleton', 'stately', 'key_strict_fifo')) STORED,
    CONSTRAINT queue_name CHECK (name ~ '^[A-Za-z0-9_./-]{1,250}$'),
    CONSTRAINT queue_policy CHECK
        (policy IN ('standard', 'short', 'singleton', 'stately', 'exclusive', 'key_strict_fifo')),
    CONSTRAINT queue_table CHECK (table_name = 'live_job_common' OR table_name ~ '^j[0-9a-f]{32}$'),
    CONSTRAINT queue_partition CHECK (partition = (table_name <> 'live_job_common')),
    -- As the options of jobs (check_job_options): shorter terms would end every lease at once.
    CONSTRAINT queue_expire_in CHECK (expire_in > 0),
    CONSTRAINT queue_heartbeat CHECK (heartbeat >= 1),
    CONSTRAINT queue_retention CHECK (retention > 0),
    CONSTRAINT queue_retry_window CHECK (retry_window > 0)
);

-- A chain of dead letter queues must end: it never leads back to a queue that is already in it.
CREATE FUNCTION trioboss.refuse_dead_letter_cycle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(trioboss.lock_number('dead letter', (SELECT seed FROM trioboss.lock_seed)));
    IF EXISTS (
        WITH RECURSIVE chain (name) AS (
            SELECT NEW.dead_letter
            UNION
            SELECT q.dead_letter FROM chain JOIN trioboss.queue q ON q.name = chain.name AND q.dead_letter IS NOT NULL
        )
        SELECT FROM chain WHERE name = NEW.name
    ) THEN
        RAISE EXCEPTION 'dead_letter: % would lead back to %', NEW.dead_letter, NEW.name
            USING ERRCODE = 'check_violation', CONSTRAINT = 'queue_dead_letter_cycle';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER refuse_dead_letter_cycle BEFORE INSERT OR UPDATE OF dead_letter ON trioboss.queue
FOR EACH ROW WHEN (NEW.dead_letter IS NOT NULL) EXECUTE FUNCTION trioboss.refuse_dead_letter_cycle();

-- A boss keeps what it has read of a queue until the revision in the answer to a claim differs from its own.
-- Name, policy and table are those of its jobs: they have backlogs and policy slots by that policy, in that table.
CREATE FUNCTION trioboss.renew_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (NEW.name, NEW.policy, NEW.partition, NEW.table_name) IS DISTINCT FROM (OLD.name, OLD.policy, OLD.partition, OLD.table_name) THEN
        RAISE EXCEPTION 'queue %: its name, policy and table cannot be changed', OLD.name
            USING ERRCODE = 'check_violation', CONSTRAINT = 'queue_fixed', HINT = 'Delete the queue, and create it again.';
    END IF;
    NEW.revision := nextval('trioboss.queue_revision');
    RETURN NEW;
END $$;

CREATE TRIGGER renew_revision BEFORE UPDATE ON trioboss.queue FOR EACH ROW EXECUTE FUNCTION trioboss.renew_revision();

-- A notification tells workers which queues were created, changed or deleted.
CREATE FUNCTION trioboss.notify_queues_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM trioboss.notify('*queues');
    RETURN NULL;
END $$;

CREATE TRIGGER queues_changed AFTER INSERT OR UPDATE OR DELETE ON trioboss.queue
FOR EACH STATEMENT EXECUTE FUNCTION trioboss.notify_queues_changed();

-- Functions are for the roles that rights/*.sql grants them to, not for everybody.
REVOKE ALL ON FUNCTION trioboss.lock_number(text, bigint), trioboss.notify(text), trioboss.make_id(), trioboss.refuse_dead_letter_cycle(),
                       trioboss.renew_revision(), trioboss.notify_queues_changed() FROM PUBLIC;
