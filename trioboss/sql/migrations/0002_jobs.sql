-- Jobs: the hot table. It holds what is created, retry or active, and what failed and blocks its key.
-- Ended jobs move to archive (0003), so this table stays as small as the work at hand.

CREATE TYPE trioboss.job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');

-- CACHE 1: numbers taken in turn are numbers in order. Order is always seq, never created_on,
-- which is the start of a transaction and the same for all jobs sent in it.
CREATE SEQUENCE trioboss.job_seq CACHE 1;

-- gate says by which road a queued job is reached:
--   0  ready: can be claimed now
--   1  arrived, not yet placed (keyed policies)
--   2  waits behind another job of its key (keyed policies)
--   3  deferred until start_after
-- Only statements/place.sql moves jobs of keyed policies to 0, under a lock, so one key has one holder.
-- A plain INSERT or COPY leaves it null, and the trigger complete_job fills in the row: what it does not say, the
-- queue does.
CREATE TABLE trioboss.job (
    id                   uuid NOT NULL DEFAULT gen_random_uuid(),
    name                 text COLLATE "C" NOT NULL,
    priority             integer NOT NULL DEFAULT 0,
    data                 jsonb,
    state                trioboss.job_state NOT NULL DEFAULT 'created',
    retry_limit          integer NOT NULL,
    retry_count          integer NOT NULL DEFAULT 0,
    retry_delay          double precision NOT NULL,
    retry_backoff        boolean NOT NULL,
    retry_delay_max      double precision,
    retry_jitter         trioboss.share NOT NULL,
    retry_window         trioboss.span,
    backoff_count        integer NOT NULL DEFAULT 0,        -- failures since the backoff last began anew
    failed_on            timestamptz,                       -- the last failure
    start_after          trioboss.instant NOT NULL DEFAULT now(),
    started_on           trioboss.instant,
    singleton_key        text COLLATE "C",
    singleton_on         timestamp,                         -- the throttle slot it occupies, in UTC
    unique_until         text COLLATE "C",                  -- 'started' (send_singleton) or 'ended' (send_once)
    expire_in            trioboss.span NOT NULL,
    heartbeat            trioboss.span,
    auto_heartbeat       boolean NOT NULL,
    heartbeat_on         timestamptz,                       -- in no index, so that a heartbeat is a cheap update
    max_lease_extensions integer NOT NULL,
    lease_extensions     integer NOT NULL DEFAULT 0,
    created_on           trioboss.instant NOT NULL DEFAULT now(),
    completed_on         timestamptz,
    keep_until           trioboss.instant NOT NULL,
    delete_after         trioboss.span NOT NULL,
    output               jsonb,
    progress             jsonb,
    dead_letter          text COLLATE "C",
    policy               text COLLATE "C",
    worker               uuid,                              -- who runs it; null for jobs fetched by hand
    source_name          text COLLATE "C",                  -- for a dead letter: the job it is a copy of
    source_id            uuid,
    source_created_on    timestamptz,
    source_retry_count   integer,
    seq                  bigint NOT NULL DEFAULT nextval('trioboss.job_seq'),
    -- The fence: grows by one with every claim and is never given back. Together with started_on it names
    -- one lease for ever, even if a crash of the server loses a claim and its number is issued again.
    attempt              integer NOT NULL DEFAULT 0,
    gate                 smallint,
    CONSTRAINT job_pkey PRIMARY KEY (name, id)
) PARTITION BY LIST (name);

-- The road of every claim: only what can run now, in the order in which it should.
CREATE INDEX job_ready ON trioboss.job (name, priority DESC, seq) WHERE gate = 0 AND state < 'active';

-- What time or place.sql will move on: deferred jobs, and arrivals of keyed policies.
CREATE INDEX job_inbox ON trioboss.job (name, gate, start_after) WHERE gate IN (1, 3) AND state < 'active';

-- Leases: to expire them, and to take back those of a dead worker. By the columns of the primary key, because the
-- planner may take either index to find an active job by its id, and must not walk along all leases for that.
CREATE INDEX job_active ON trioboss.job (name, id) WHERE state = 'active';

-- Failed jobs that block their key.
CREATE INDEX job_ended ON trioboss.job (name, singleton_key) WHERE state > 'active';

-- The line in front of each key: who is next when the key becomes free. And the keys that have arrivals, one by one.
CREATE INDEX job_line ON trioboss.job
    (name, gate, coalesce(singleton_key, ''), (CASE WHEN policy = 'key_strict_fifo' THEN 0 ELSE -priority END), seq)
    WHERE gate IN (1, 2) AND state < 'active' AND policy IN ('singleton', 'stately', 'key_strict_fifo');

-- One holder a key: ready or active, and for strict FIFO also retrying or failed. A claim turns the
-- holder from ready to active, so it can never meet a violation here.
CREATE UNIQUE INDEX job_holder ON trioboss.job (name, coalesce(singleton_key, ''))
    WHERE policy IN ('singleton', 'stately', 'key_strict_fifo')
      AND (state = 'active' OR (gate = 0 AND state < 'active')
           OR (policy = 'key_strict_fifo' AND state IN ('retry', 'failed')));

CREATE UNIQUE INDEX job_short ON trioboss.job (name, coalesce(singleton_key, ''))
    WHERE policy = 'short' AND state = 'created';

CREATE UNIQUE INDEX job_stately ON trioboss.job (name, coalesce(singleton_key, ''), state)
    WHERE policy = 'stately' AND state <= 'active';

CREATE UNIQUE INDEX job_exclusive ON trioboss.job (name, coalesce(singleton_key, ''))
    WHERE policy = 'exclusive' AND state <= 'active';

CREATE UNIQUE INDEX job_once ON trioboss.job (name, coalesce(singleton_key, ''))
    WHERE unique_until = 'ended' AND state <= 'active';

CREATE UNIQUE INDEX job_singleton ON trioboss.job (name, coalesce(singleton_key, ''))
    WHERE unique_until = 'started' AND state < 'active';

-- Keys that lost their holder: place.sql looks here for lines that can move up.
CREATE TABLE trioboss.freed_key (
    name  text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX freed_key_name ON trioboss.freed_key (name);

-- Throttle slots. A job occupies its slot even after it has ended, unless it was cancelled or deleted.
CREATE TABLE trioboss.throttle (
    name        text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    slot        timestamptz NOT NULL,
    until       timestamptz NOT NULL,
    job_id      uuid NOT NULL,
    PRIMARY KEY (name, key, slot)
);
CREATE INDEX throttle_job ON trioboss.throttle (job_id);
CREATE INDEX throttle_until ON trioboss.throttle (until);

-- Whoever takes the holder of a key away, by whatever statement, leaves word that the key is free. A holder is
-- active, or next to be; in strict FIFO also who failed, or waits to be tried again.
CREATE FUNCTION trioboss.free_key() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (OLD.state = 'active' OR (OLD.gate = 0 AND OLD.state < 'active')
        OR (OLD.policy = 'key_strict_fifo' AND OLD.state IN ('retry', 'failed')))
       AND (TG_OP = 'DELETE' OR NEW.singleton_key IS DISTINCT FROM OLD.singleton_key
            OR NOT (NEW.state = 'active' OR (NEW.gate = 0 AND NEW.state < 'active')
                    OR (NEW.policy = 'key_strict_fifo' AND NEW.state IN ('retry', 'failed')))) THEN
        INSERT INTO trioboss.freed_key (name, key) VALUES (OLD.name, coalesce(OLD.singleton_key, ''));
    END IF;
    RETURN NULL;
END $$;

-- Conditions are read anew by every statement, on queues without keys, too: they are short, and the function asks the
-- rest. Who is placed or claimed still holds its key.
CREATE TRIGGER holder_deleted AFTER DELETE ON trioboss.job FOR EACH ROW
WHEN (OLD.policy IN ('singleton', 'stately', 'key_strict_fifo')) EXECUTE FUNCTION trioboss.free_key();

CREATE TRIGGER holder_changed AFTER UPDATE OF state, gate, singleton_key ON trioboss.job FOR EACH ROW
WHEN (OLD.policy IN ('singleton', 'stately', 'key_strict_fifo')
      AND (NEW.gate <> 0 OR NEW.state > 'active' OR NEW.singleton_key IS DISTINCT FROM OLD.singleton_key))
EXECUTE FUNCTION trioboss.free_key();

-- The lock that makes the order of a key the order of commit: senders of one key wait for each other, from
-- the send to the end of their transaction. 1024 locks a queue, because a transaction can hold only so many.
CREATE FUNCTION trioboss.turn(queue text, key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    -- Every name is qualified, also those of operators: a search_path of its own would cost the inlining.
    SELECT pg_catalog.hashtextextended(
        'trioboss' OPERATOR(pg_catalog.||) '/' OPERATOR(pg_catalog.||) queue OPERATOR(pg_catalog.||) '/'
        OPERATOR(pg_catalog.||)
        (pg_catalog.hashtextextended(key, 0) OPERATOR(pg_catalog.&) 1023::pg_catalog.int8)::pg_catalog.text, 0)
$$;

-- Plain SQL may INSERT or COPY a job with no more than its name; this fills in the rest, as send would.
CREATE FUNCTION trioboss.complete_job() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    q trioboss.queue;
BEGIN
    SELECT * INTO q FROM trioboss.queue WHERE name = NEW.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'queue % does not exist', NEW.name USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF q.policy = 'key_strict_fifo' AND NEW.singleton_key IS NULL THEN
        RAISE EXCEPTION 'key_strict_fifo queues require a singleton_key' USING ERRCODE = 'not_null_violation';
    END IF;
    IF q.policy = 'key_strict_fifo' AND q.commit_order THEN
        PERFORM pg_advisory_xact_lock(trioboss.turn(NEW.name, NEW.singleton_key));
        NEW.seq := nextval('trioboss.job_seq');
    END IF;
    NEW.policy := q.policy;
    NEW.dead_letter := coalesce(NEW.dead_letter, q.dead_letter);
    NEW.retry_limit := coalesce(NEW.retry_limit, q.retry_limit);
    NEW.retry_delay := coalesce(NEW.retry_delay, q.retry_delay);
    NEW.retry_jitter := coalesce(NEW.retry_jitter, CASE WHEN NEW.retry_backoff IS NULL THEN q.retry_jitter
                                                        WHEN NEW.retry_backoff THEN 0.5 ELSE 0 END);
    NEW.retry_backoff := coalesce(NEW.retry_backoff, q.retry_backoff);
    NEW.retry_delay_max := coalesce(NEW.retry_delay_max, q.retry_delay_max);
    NEW.retry_window := coalesce(NEW.retry_window, q.retry_window);
    NEW.expire_in := coalesce(NEW.expire_in, q.expire_in);
    NEW.heartbeat := coalesce(NEW.heartbeat, q.heartbeat);
    NEW.auto_heartbeat := coalesce(NEW.auto_heartbeat, q.auto_heartbeat);
    NEW.max_lease_extensions := coalesce(NEW.max_lease_extensions, q.max_lease_extensions);
    NEW.delete_after := coalesce(NEW.delete_after, q.delete_after);
    -- What would be too old to keep before it can run is kept as long as others.
    IF NEW.keep_until IS NULL OR NEW.keep_until <= NEW.start_after THEN
        NEW.keep_until := greatest(NEW.start_after, statement_timestamp()) + q.retention;
    END IF;
    NEW.gate := CASE WHEN NEW.state >= 'active' THEN 0
                     WHEN NEW.start_after > statement_timestamp() THEN 3
                     WHEN q.keyed THEN 1
                     ELSE 0 END;
    IF NEW.singleton_on IS NOT NULL THEN
        INSERT INTO trioboss.throttle (name, key, slot, until, job_id)
        VALUES (NEW.name, coalesce(NEW.singleton_key, ''), NEW.singleton_on AT TIME ZONE 'UTC',
                greatest(NEW.singleton_on AT TIME ZONE 'UTC', statement_timestamp()) + interval '1 day', NEW.id);
    END IF;
    PERFORM pg_notify('trioboss', NEW.name);
    RETURN NEW;
END $$;

CREATE TRIGGER complete_job BEFORE INSERT ON trioboss.job FOR EACH ROW
WHEN (NEW.gate IS NULL) EXECUTE FUNCTION trioboss.complete_job();

-- Where the jobs of all queues live that have no table of their own.
CREATE TABLE trioboss.job_common (LIKE trioboss.job INCLUDING DEFAULTS)
WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
      autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE trioboss.job ATTACH PARTITION trioboss.job_common DEFAULT;

-- A table made for one queue, day or load is open to those its model is open to, and to nobody else.
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

-- Run a command that needs a table for itself. Whoever waits for such a lock keeps out everybody who comes later, so it
-- waits in short bites, between which the others go on. It gives up when its patience is at an end.
CREATE FUNCTION trioboss.run_between_others(command text, patience interval) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + coalesce(nullif(patience, interval '0'), interval '10 s');
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

-- A table of its own for a queue. Attaching looks through job_common for jobs of that name, so a queue gets
-- its table when it is created and never later. It waits for as long as the session's lock_timeout says, or 10 s.
CREATE FUNCTION trioboss.add_job_table(queue text, table_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF table_name !~ '^j[0-9a-f]{32}$' THEN
        RAISE EXCEPTION '% is not a table of one queue', table_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format(
        'CREATE TABLE trioboss.%I (LIKE trioboss.job INCLUDING DEFAULTS) '
        'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, '
        'autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)', table_name);
    PERFORM trioboss.run_between_others(
        format('ALTER TABLE trioboss.job ATTACH PARTITION trioboss.%I FOR VALUES IN (%L)', table_name, queue),
        current_setting('lock_timeout')::interval);
    PERFORM trioboss.copy_rights('trioboss.job_common', format('trioboss.%I', table_name));
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

-- Functions are for the roles they are granted to, not for everybody.
REVOKE ALL ON FUNCTION trioboss.free_key(), trioboss.turn(text, text), trioboss.complete_job(),
                       trioboss.copy_rights(regclass, regclass), trioboss.run_between_others(text, interval),
                       trioboss.add_job_table(text, text), trioboss.drop_job_table(text) FROM PUBLIC;
