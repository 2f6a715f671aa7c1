-- The tables through which bosses coordinate: schedules, subscriptions, idle dispatchers, workers, the leader.

CREATE TABLE trioboss.schedule (
    queue       text COLLATE "C" NOT NULL REFERENCES trioboss.queue ON DELETE CASCADE,
    key         trioboss.key NOT NULL DEFAULT '',
    cron        text NOT NULL CHECK (octet_length(cron) <= 10000),
    timezone    text NOT NULL DEFAULT 'UTC' CHECK (octet_length(timezone) <= 100),
    missed      text NOT NULL DEFAULT 'skip' CHECK (missed IN ('skip', 'latest', 'all')),
    data        trioboss.document,
    options     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(options) = 'object' AND octet_length(options::text) <= 10000),
    label       text,                           -- the app that declares it; null: none
    created_on  trioboss.instant NOT NULL DEFAULT now(),
    updated_on  trioboss.instant NOT NULL DEFAULT now(),
    PRIMARY KEY (queue, key)
);

-- The ticks of cron: the boss that inserts the row of a tick fires it, so it is fired once.
CREATE TABLE trioboss.tick (
    queue    text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    due      trioboss.instant NOT NULL,
    fired_on trioboss.instant NOT NULL DEFAULT now(),
    job_id   uuid,
    PRIMARY KEY (queue, key, due),
    FOREIGN KEY (queue, key) REFERENCES trioboss.schedule ON DELETE CASCADE
);

-- The versions of each app that `trioboss migrate MODULE:APP` has deployed, by a digest of what they declare. The
-- version with the highest generation is the deployed one. Workers change no queue and no schedule of an app that has a
-- row here: the worker of a replaced version that restarts would undo the deployment.
CREATE TABLE trioboss.deployment (
    label        text COLLATE "C" NOT NULL,
    digest       text COLLATE "C" NOT NULL,
    generation   integer NOT NULL,
    declaration  jsonb NOT NULL,                -- {"queues": {name: options}, "schedules": [[queue, key], …]}
    deployed_on  trioboss.instant NOT NULL DEFAULT now(),
    PRIMARY KEY (label, digest)
);

CREATE TABLE trioboss.subscription (
    event       text COLLATE "C" NOT NULL,
    queue       text COLLATE "C" NOT NULL REFERENCES trioboss.queue ON DELETE CASCADE,
    created_on  trioboss.instant NOT NULL DEFAULT now(),
    PRIMARY KEY (event, queue)
);

-- Idle markers: dispatchers to be notified when a job of the queue can run. A crash of the server loses them;
-- dispatchers set them again when they reconnect.
CREATE UNLOGGED TABLE trioboss.idle_dispatcher (
    queue   text COLLATE "C" NOT NULL,
    worker  uuid NOT NULL,
    PRIMARY KEY (queue, worker)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Callers that wait for one job to end.
CREATE UNLOGGED TABLE trioboss.completion_waiter (
    job_id  uuid NOT NULL,
    waiter  uuid NOT NULL,
    until   trioboss.instant NOT NULL,
    PRIMARY KEY (job_id, waiter)
);

-- Workers. While its boss is connected, the session `pid` of that boss holds a session lock with the number `lock`. If
-- that session does not hold the lock, the worker is gone, and after the grace it counts as dead. Behind a transaction
-- pooler there are no session locks: `lock` is null, and the boss keeps `seen_on` up to date instead.
CREATE TABLE trioboss.worker (
    id          uuid PRIMARY KEY,
    boss        uuid NOT NULL,
    name        text NOT NULL CHECK (octet_length(name) <= 1000),
    queue       text NOT NULL,                  -- a name, or a pattern with *
    lock        bigint,
    pid         integer,
    started_on  trioboss.instant NOT NULL DEFAULT now(),
    seen_on     trioboss.instant NOT NULL DEFAULT now(),
    gone_since  trioboss.instant,
    stopped     boolean NOT NULL DEFAULT false, -- it has ended, and left leases that it could not settle
    CONSTRAINT worker_queue CHECK (queue ~ '^[A-Za-z0-9_./*-]{1,250}$')
);

-- The boss that does maintenance, and until when it leads without a further sign. One row at most.
CREATE UNLOGGED TABLE trioboss.leader (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    boss    uuid NOT NULL,
    until   timestamptz NOT NULL
);

-- Make the candidate the leader for the next seconds, if there is no other; returns true, or null. poll.sql calls it,
-- so a leader repeats it with every poll. A candidate with a `session` of its own also tries to take a session lock. If
-- it gets the lock, it leads at once, although the row names another boss whose time has not run out: that one is dead,
-- or has no session of its own. A leader that is frozen, or cut off without the server noticing, keeps the lock,
-- possibly for ever; then the time in the row decides. Two bosses may lead for a moment: everything that a leader does
-- is fenced. No candidate waits: a row that is locked belongs to another boss.
CREATE FUNCTION trioboss.lead(candidate uuid, seconds double precision, session boolean) RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO trioboss.leader (boss, until)
    SELECT candidate, '-infinity' WHERE NOT EXISTS (SELECT FROM trioboss.leader)
    ON CONFLICT DO NOTHING;
    WITH locked AS MATERIALIZED (
        SELECT CASE WHEN session
                    THEN pg_try_advisory_lock(trioboss.lock_number('leader', (SELECT seed FROM trioboss.lock_seed)))
                    ELSE false END AS mine
    ), free AS MATERIALIZED (
        -- A time far away is none that a leader has set: bosses lead for seconds.
        SELECT one FROM trioboss.leader, locked WHERE mine OR boss = candidate OR NOT until BETWEEN now() AND now() + interval '1 hour'
        FOR UPDATE OF leader SKIP LOCKED
    )
    UPDATE trioboss.leader SET boss = candidate, until = now() + seconds * interval '1 s'
    FROM free WHERE leader.one = free.one
    RETURNING true
$$;
REVOKE ALL ON FUNCTION trioboss.lead(uuid, double precision, boolean) FROM PUBLIC;

-- Bulk sends are copied here first: checked as a set, then released in one commit.
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

-- release_staged.sql: the rows of one load, in their order. No promise: loads that run beside each other would read
-- each other's rows.
CREATE INDEX staging_load ON trioboss.staging (load, position);
