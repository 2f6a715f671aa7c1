-- Queues: their policy, and the options that jobs inherit when they are sent.

CREATE SCHEMA IF NOT EXISTS "trioboss";

-- Whoever writes: instants that every program can read, and lengths of time that can be added to them. Types of their own
-- are checked where a value is new; the CHECK of a table would be read and evaluated anew by every claim.
CREATE DOMAIN trioboss.instant AS timestamptz CHECK (VALUE >= '0001-01-02Z' AND VALUE < '9000-01-01Z');
CREATE DOMAIN trioboss.span AS interval CHECK (VALUE <= interval '200 years');
CREATE DOMAIN trioboss.share AS double precision CHECK (VALUE BETWEEN 0 AND 1);

CREATE TABLE trioboss.version (
    version     integer NOT NULL PRIMARY KEY,
    applied_on  timestamptz NOT NULL DEFAULT now()
);

-- Every send reads this table, so nothing that changes often may live in it.
CREATE TABLE trioboss.queue (
    name                 text COLLATE "C" PRIMARY KEY,
    policy               text NOT NULL DEFAULT 'standard',
    partition            boolean NOT NULL DEFAULT false,
    table_name           text NOT NULL DEFAULT 'job_common',     -- where its jobs are
    paused               boolean NOT NULL DEFAULT false,
    on_complete          boolean NOT NULL DEFAULT false,         -- ended jobs leave a completion job
    dead_letter          text COLLATE "C" REFERENCES trioboss.queue (name),
    warning_queue_size   integer,
    retry_limit          integer NOT NULL DEFAULT 2,
    retry_delay          double precision NOT NULL DEFAULT 0,    -- seconds
    retry_backoff        boolean NOT NULL DEFAULT false,
    retry_delay_max      double precision,                       -- seconds
    retry_jitter         trioboss.share NOT NULL DEFAULT 0,      -- the random share of a delay, 0 to 1
    retry_window         trioboss.span,
    expire_in            trioboss.span NOT NULL DEFAULT interval '15 minutes',
    heartbeat            trioboss.span,
    auto_heartbeat       boolean NOT NULL DEFAULT true,
    max_lease_extensions integer NOT NULL DEFAULT 3,
    commit_order         boolean NOT NULL DEFAULT true,
    retention            interval NOT NULL DEFAULT interval '14 days',
    delete_after         trioboss.span NOT NULL DEFAULT interval '7 days',
    keep_completed       boolean NOT NULL DEFAULT true,
    created_on           timestamptz NOT NULL DEFAULT now(),
    updated_on           timestamptz NOT NULL DEFAULT now(),
    -- Keyed: jobs of one key take turns. Their jobs are placed before they can be claimed.
    keyed boolean GENERATED ALWAYS AS (policy IN ('singleton', 'stately', 'key_strict_fifo')) STORED,
    CONSTRAINT queue_name CHECK (name ~ '^[A-Za-z0-9_./-]{1,250}$'),
    CONSTRAINT queue_policy CHECK
        (policy IN ('standard', 'short', 'singleton', 'stately', 'exclusive', 'key_strict_fifo'))
);

-- Dead letters must come to rest: a chain of dead letter queues never leads back to where it began.
CREATE FUNCTION trioboss.refuse_dead_letter_circle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('trioboss' || ' dead letter', 0));
    IF EXISTS (
        WITH RECURSIVE chain (name) AS (
            SELECT NEW.dead_letter
            UNION
            SELECT q.dead_letter FROM chain JOIN trioboss.queue q ON q.name = chain.name AND q.dead_letter IS NOT NULL
        )
        SELECT FROM chain WHERE name = NEW.name
    ) THEN
        RAISE EXCEPTION 'dead_letter: % would lead back to %', NEW.dead_letter, NEW.name
            USING ERRCODE = 'check_violation', CONSTRAINT = 'queue_dead_letter_circle';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER dead_letter_circle BEFORE INSERT OR UPDATE OF dead_letter ON trioboss.queue
FOR EACH ROW WHEN (NEW.dead_letter IS NOT NULL) EXECUTE FUNCTION trioboss.refuse_dead_letter_circle();

-- Workers on a pattern learn of new queues, and senders of deleted ones, by a word on the channel.
CREATE FUNCTION trioboss.announce_queues() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_notify('trioboss', '*queues');
    RETURN NULL;
END $$;

CREATE TRIGGER queues_changed AFTER INSERT OR UPDATE OR DELETE ON trioboss.queue
FOR EACH STATEMENT EXECUTE FUNCTION trioboss.announce_queues();

-- Functions are for the roles they are granted to, not for everybody.
REVOKE ALL ON FUNCTION trioboss.refuse_dead_letter_circle(), trioboss.announce_queues() FROM PUBLIC;
