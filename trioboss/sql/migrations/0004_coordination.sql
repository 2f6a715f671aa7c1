-- What bosses tell each other through the database: schedules, subscriptions, who sleeps, who is alive.

CREATE TABLE trioboss.schedule (
    name        text COLLATE "C" NOT NULL REFERENCES trioboss.queue ON DELETE CASCADE,
    key         text COLLATE "C" NOT NULL DEFAULT '',
    cron        text NOT NULL,
    timezone    text NOT NULL DEFAULT 'UTC',
    missed      text NOT NULL DEFAULT 'skip' CHECK (missed IN ('skip', 'latest', 'all')),
    data        jsonb,
    options     jsonb NOT NULL DEFAULT '{}',
    created_on  timestamptz NOT NULL DEFAULT now(),
    updated_on  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, key)
);

-- The ledger of cron: a tick is fired by whoever writes its row, so it is fired once.
CREATE TABLE trioboss.tick (
    name     text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    due      timestamptz NOT NULL,
    fired_on timestamptz NOT NULL DEFAULT now(),
    job_id   uuid,
    PRIMARY KEY (name, key, due),
    FOREIGN KEY (name, key) REFERENCES trioboss.schedule ON DELETE CASCADE
);

CREATE TABLE trioboss.subscription (
    event       text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL REFERENCES trioboss.queue ON DELETE CASCADE,
    created_on  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (event, name)
);

-- Dispatchers that want to be woken when a job of the queue can run. Lost in a crash of the server, and written
-- again when the dispatchers reconnect.
CREATE UNLOGGED TABLE trioboss.sleeper (
    name    text COLLATE "C" NOT NULL,
    worker  uuid NOT NULL,
    PRIMARY KEY (name, worker)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Callers that wait for one job to end.
CREATE UNLOGGED TABLE trioboss.watcher (
    job_id  uuid NOT NULL,
    watcher uuid NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (job_id, watcher)
);

-- Workers. The boss of each holds a session lock on `lock` for as long as it is there; a row whose lock nobody
-- holds belongs to a dead one. Behind a transaction pooler there are no session locks: `lock` is null, and
-- `seen_on` is kept fresh instead.
CREATE TABLE trioboss.worker (
    id          uuid PRIMARY KEY,
    boss        uuid NOT NULL,
    name        text NOT NULL,
    queue       text NOT NULL,                  -- a name, or a pattern with *
    lock        bigint,
    started_on  timestamptz NOT NULL DEFAULT now(),
    seen_on     timestamptz NOT NULL DEFAULT now(),
    gone_since  timestamptz
);

-- Who does upkeep, and until when if it says nothing more. There is one row at most.
CREATE UNLOGGED TABLE trioboss.leader (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    boss    uuid NOT NULL,
    until   timestamptz NOT NULL
);

-- Lead for the next seconds, if nobody else does; true, or null. A part of look.sql, which says it again and again.
-- In a `session` of its own a leader holds a lock as well, so that another one can follow the moment it dies. A leader
-- that fell silent (frozen, or cut off without the server being told) keeps that lock, for ever maybe: its time runs out.
-- Who has the lock goes before who has only the time. Two may lead for a moment; what they do is fenced. Nobody waits: a
-- row that somebody else is writing is somebody else's.
CREATE FUNCTION trioboss.lead(candidate uuid, seconds double precision, session boolean) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO trioboss.leader (boss, until)
    SELECT candidate, '-infinity' WHERE NOT EXISTS (SELECT FROM trioboss.leader)
    ON CONFLICT DO NOTHING;
    WITH locked AS MATERIALIZED (
        SELECT CASE WHEN session THEN pg_try_advisory_lock(hashtextextended('trioboss' || '/leader', 0))
                    ELSE false END AS mine
    ), free AS MATERIALIZED (
        SELECT one FROM trioboss.leader, locked WHERE mine OR boss = candidate OR until < now()
        FOR UPDATE OF leader SKIP LOCKED
    )
    UPDATE trioboss.leader SET boss = candidate, until = now() + seconds * interval '1 s'
    FROM free WHERE leader.one = free.one
    RETURNING true
$$;
REVOKE ALL ON FUNCTION trioboss.lead(uuid, double precision, boolean) FROM PUBLIC;

-- Bulk loads land here first: checked as a set, then released in one commit.
CREATE UNLOGGED TABLE trioboss.staging (
    load            uuid NOT NULL,
    position        bigint NOT NULL,
    id              uuid NOT NULL,
    data            jsonb,
    priority        integer,
    start_after     timestamptz,
    delay           double precision,
    singleton_key   text COLLATE "C",
    options         jsonb
);
CREATE INDEX staging_load ON trioboss.staging (load, position);
