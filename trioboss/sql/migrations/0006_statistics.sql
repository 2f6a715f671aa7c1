-- What operators see and do: samples of each queue, warnings, who did what from the dashboard, paused schedules.

-- One row a queue and minute, only where something changed; kept for a day (prune.sql). A minute without a row is like
-- the one before it, and nothing arrived or ended in it. Maintenance writes here (sample_*.sql), from the tables that
-- there are: no job pays for it.
CREATE TABLE trioboss.queue_sample (
    minute     timestamptz NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    -- At the end of the minute, each counted up to 100000; null where they were not counted in this minute.
    deferred   integer,
    waiting    integer,                              -- behind the owner of their key (reserved: or a limit)
    ready      integer,
    active     integer,
    -- During the minute.
    arrived    integer NOT NULL DEFAULT 0,
    completed  integer NOT NULL DEFAULT 0,
    failed     integer NOT NULL DEFAULT 0,           -- attempts that failed, expired or were lost
    waits      integer[],                            -- completed jobs by the seconds they waited (model/statistics.py: BOUNDS)
    runs       integer[],                            -- and by the seconds they ran
    PRIMARY KEY (queue, minute)
) WITH (fillfactor = 70);

-- How far the samples go: jobs whose ids were made before `counted`, and history of transactions before `xid`. The
-- transaction `taken_by` adds what is new since `counted_before` and `xid_before`. One row.
CREATE TABLE trioboss.sampling (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    counted         timestamptz NOT NULL DEFAULT now(),
    xid             xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    counted_before  timestamptz,
    xid_before      xid8,
    taken_by        xid8
);
INSERT INTO trioboss.sampling DEFAULT VALUES;

-- Histograms of the same bounds, added up.
CREATE FUNCTION trioboss.add_counts(a integer[], b integer[]) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a
                ELSE (SELECT array_agg(coalesce(t.x, 0) + coalesce(t.y, 0) ORDER BY t.n)
                      FROM unnest(a, b) WITH ORDINALITY t (x, y, n)) END
$$;

-- What maintenance has warned of. While a warning comes back every minute, it is one row that grows older. Kept for a
-- week.
CREATE TABLE trioboss.warning (
    id        uuid PRIMARY KEY DEFAULT trioboss.make_id(),
    queue     text COLLATE "C",
    kind      text COLLATE "C" NOT NULL,
    message   text NOT NULL CHECK (octet_length(message) <= 10000),
    first_on  timestamptz NOT NULL,
    last_on   timestamptz NOT NULL,
    count     integer NOT NULL DEFAULT 1
);

-- What people did from the dashboard: each row is written with the change it tells of. Kept for 90 days.
CREATE TABLE trioboss.audit (
    id         uuid PRIMARY KEY DEFAULT trioboss.make_id(),
    at         timestamptz NOT NULL DEFAULT now(),
    who        text NOT NULL,
    action     text COLLATE "C" NOT NULL,
    queue      text COLLATE "C",
    filter     trioboss.document,                                -- the jobs it was about: ids, or the filter with its bounds
    requested  bigint NOT NULL DEFAULT 0,
    affected   bigint NOT NULL DEFAULT 0
);

ALTER TABLE trioboss.schedule ADD COLUMN paused boolean NOT NULL DEFAULT false;

-- What the boss of a worker tells about itself when it starts: host, pid, version, slots.
ALTER TABLE trioboss.worker ADD COLUMN info trioboss.document;

REVOKE ALL ON FUNCTION trioboss.add_counts(integer[], integer[]) FROM PUBLIC;
