-- What bosses coordinate through the database: schedules, subscriptions, idle dispatchers, workers, the leader.

CREATE TABLE trioboss.schedule (
    queue       text COLLATE "C" NOT NULL REFERENCES trioboss.queue ON DELETE CASCADE,
    key         text COLLATE "C" NOT NULL DEFAULT '',
    cron        text NOT NULL,
    timezone    text NOT NULL DEFAULT 'UTC',
    missed      text NOT NULL DEFAULT 'skip' CHECK (missed IN ('skip', 'latest', 'all')),
    data        jsonb,
    options     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(options) = 'object'),
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

CREATE TABLE trioboss.subscription (
    event       text COLLATE "C" NOT NULL,
    queue       text COLLATE "C" NOT NULL REFERENCES trioboss.queue ON DELETE CASCADE,
    created_on  timestamptz NOT NULL DEFAULT now(),
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

-- Workers. The boss of each holds a session lock with the number `lock` in its session `pid` while it is connected; a row
-- whose lock that session does not hold belongs to a worker that is gone, and counts as dead after the grace. Behind a transaction pooler there are no session locks:
-- `lock` is null, and the boss keeps `seen_on` up to date instead.
CREATE TABLE trioboss.worker (
    id          uuid PRIMARY KEY,
    boss        uuid NOT NULL,
    name        text NOT NULL,
    queue       text NOT NULL,                  -- a name, or a pattern with *
    lock        bigint,
    pid         integer,
    started_on  trioboss.instant NOT NULL DEFAULT now(),
    seen_on     trioboss.instant NOT NULL DEFAULT now(),
    gone_since  trioboss.instant,
    CONSTRAINT worker_queue CHECK (queue ~ '^[A-Za-z0-9_./*-]{1,250}$')
);

-- The boss that does maintenance, and until when it leads without a further sign. One row at most.
CREATE UNLOGGED TABLE trioboss.leader (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    boss    uuid NOT NULL,
    until   timestamptz NOT NULL
);

-- Lead for the next seconds, if no other boss does; true, or null. A part of poll.sql, which repeats it.
-- With a `session` of its own a leader also holds a session lock, so that another boss can follow the moment it dies. A
-- leader that is frozen, or cut off without the server noticing, keeps that lock, possibly for ever: then its time
-- runs out. A boss with the lock takes precedence over one with only an unexpired row. Two may lead for a moment; what they do
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
CREATE INDEX staging_load ON trioboss.staging (load, position);
