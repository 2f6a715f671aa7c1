-- Tables of what operators see and do: samples of each queue, warnings, who did what from the dashboard, paused
-- schedules.

-- One row a queue and minute, only where something changed; kept for a day (prune.sql). A minute without a row is like
-- the one before it, and nothing arrived or ended in it. Maintenance writes here (sample_*.sql), from the tables that
-- there are: no job pays for it.
CREATE TABLE trioboss.queue_sample (
    minute     trioboss.instant NOT NULL,
    queue      text COLLATE "C" NOT NULL,
    -- At the end of the minute, each counted up to 100000; null where they were not counted in this minute.
    deferred   trioboss.amount,
    waiting    trioboss.amount,                      -- behind the owner of their key (reserved: or a limit)
    ready      trioboss.amount,
    active     trioboss.amount,
    -- During the minute.
    arrived    trioboss.amount NOT NULL DEFAULT 0,
    completed  trioboss.amount NOT NULL DEFAULT 0,
    failed     trioboss.amount NOT NULL DEFAULT 0,   -- attempts that failed, expired or were lost
    waits      trioboss.histogram,                   -- completed jobs by the seconds they waited (model/statistics.py: BOUNDS)
    runs       trioboss.histogram,                   -- and by the seconds they ran
    PRIMARY KEY (queue, minute)
) WITH (fillfactor = 70);

-- How far the samples go: jobs whose ids were made before `counted`, and history of transactions before `xid`. The
-- transaction `taken_by` adds what is new since `counted_before` and `xid_before`. One row.
CREATE TABLE trioboss.sampling (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    counted         trioboss.instant NOT NULL DEFAULT now(),
    xid             xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    counted_before  trioboss.instant,
    xid_before      xid8,
    taken_by        xid8
);
INSERT INTO trioboss.sampling DEFAULT VALUES;

-- Histograms of the same bounds, added up. No count is larger than the domain amount allows.
CREATE FUNCTION trioboss.add_counts(a integer[], b integer[]) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a
                ELSE (SELECT array_agg(least(coalesce(t.x, 0)::int8 + coalesce(t.y, 0), 1000000000)::int4 ORDER BY t.n)
                      FROM unnest(a, b) WITH ORDINALITY t (x, y, n)) END
$$;

-- The warnings of maintenance. While a warning comes back every minute, it is one row that grows older. Kept for a
-- week.
CREATE TABLE trioboss.warning (
    id        uuid PRIMARY KEY DEFAULT trioboss.make_id(),
    queue     trioboss.key,
    kind      trioboss.key NOT NULL,
    message   text NOT NULL CHECK (octet_length(message) <= 10000),
    first_on  trioboss.instant NOT NULL,
    last_on   trioboss.instant NOT NULL,
    count     trioboss.amount NOT NULL DEFAULT 1
);

-- The actions of people from the dashboard: each row is written with the change that it records. Kept for 90 days.
CREATE TABLE trioboss.audit (
    id         uuid PRIMARY KEY DEFAULT trioboss.make_id(),
    at         trioboss.instant NOT NULL DEFAULT now(),
    who        text NOT NULL CHECK (octet_length(who) <= 10000),
    action     trioboss.key NOT NULL,
    queue      trioboss.key,
    filter     trioboss.document,                                -- the jobs it was about: ids, or the filter with its bounds
    requested  bigint NOT NULL DEFAULT 0 CHECK (requested BETWEEN 0 AND 1000000000000000),
    affected   bigint NOT NULL DEFAULT 0 CHECK (affected BETWEEN 0 AND 1000000000000000)
);

ALTER TABLE trioboss.schedule ADD COLUMN paused boolean NOT NULL DEFAULT false;

-- The facts that a worker's boss registers about itself when it starts: host, pid, version, slots.
ALTER TABLE trioboss.worker ADD COLUMN info trioboss.document;

REVOKE ALL ON FUNCTION trioboss.add_counts(integer[], integer[]) FROM PUBLIC;
