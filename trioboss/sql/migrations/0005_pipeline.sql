-- The tables of the data pipeline: exports and streams of history, and bulk loads.

-- find_new.sql, find_cut.sql, find_bounds.sql, find_blocks.sql and count_history.sql: exports and streams read new rows
-- by transaction. The ids only grow, so settling a job appends at one end of the index: about 1 µs a job, 0 to 4 % of
-- it. No promise: a stream would read all of history for each batch.
CREATE INDEX archive_xid ON trioboss.archive (xid);

-- The same statements as for archive_xid, above all find_new.sql: exports and streams of attempts. No promise, as
-- above.
CREATE INDEX attempt_xid ON trioboss.attempt (xid);

-- The lakes to which history is exported. This table decides what is exported: a batch exists once its row is updated
-- here, and only the export that holds `token` may add one. An export that takes a lake raises the token, so an older
-- one that is still running can add nothing more.
CREATE TABLE trioboss.lake (
    id           uuid PRIMARY KEY,                   -- as its manifest has it
    address      text NOT NULL,
    token        bigint NOT NULL,
    batch        bigint NOT NULL,                    -- the number of the last batch
    pending      jsonb,                              -- the last batch, until its files are in place
    exported     xid8 NOT NULL,                      -- all rows of older transactions are in the lake, in place
    exported_on  timestamptz NOT NULL DEFAULT now(),
    holds        boolean NOT NULL DEFAULT false      -- retention keeps rows that are not in the lake
);

-- Numbers by their names.
CREATE DOMAIN trioboss.numbers AS jsonb CHECK (jsonb_typeof(VALUE) = 'object'
    AND NOT jsonb_path_exists(VALUE, '$.* ? (@.type() != "number" || @ < 0 || @ > 1000000000000000)'));

-- The last audit of this schema's history and of each lake: what was checked, and how many findings of each kind there
-- are. The findings themselves are not kept: they name keys, which `erase` would have to find here, too.
CREATE TABLE trioboss.history_audit (
    source      text COLLATE "C" PRIMARY KEY,        -- database, or the address of the lake
    ended_on    trioboss.instant NOT NULL,
    since       trioboss.instant,                    -- the part of history that was asked for; null: from the beginning
    until       trioboss.instant,
    queues      text[] NOT NULL,                     -- empty: all
    jobs        bigint NOT NULL,
    attempts    bigint NOT NULL,
    violations  trioboss.numbers NOT NULL,           -- the number of each kind
    possible    trioboss.numbers NOT NULL
);

-- The newest transaction of which retention has deleted a row, for each history table. A stream that has not come so
-- far has missed rows.
CREATE TABLE trioboss.deleted_history (
    history  text COLLATE "C" PRIMARY KEY CHECK (history IN ('archive', 'attempt')),
    xid      xid8 NOT NULL
);

-- Reads of history, each registered by its tasks while it lasts. Retention keeps their days. All tasks of a read use
-- the snapshot that the first of them registered, and refuse to go on if a table of that time is gone or was rewritten.
CREATE UNLOGGED TABLE trioboss.reader (
    id         uuid PRIMARY KEY,
    first_day  date NOT NULL,
    last_day   date NOT NULL,
    until      timestamptz NOT NULL,
    snapshot   pg_snapshot NOT NULL,
    files      jsonb NOT NULL                    -- the tables of the history, with the numbers of their files
);

-- Register a read of `history`, or renew its registration, for so many seconds from now, five minutes at most. The
-- first task of a read decides what all its tasks see: the `wanted` snapshot or else the one of this call, and the
-- tables that there are. It acts for the owner, so that roles that only read can take part; they can hold back
-- retention by it only as long as they go on calling it.
CREATE FUNCTION trioboss.register_read(
    read uuid, history text, first_day date, last_day date, seconds double precision, wanted pg_snapshot
) RETURNS TABLE (snapshot pg_snapshot, files jsonb)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO trioboss.reader (id, first_day, last_day, until, snapshot, files)
    SELECT read, coalesce(first_day, '-infinity'), coalesce(last_day, 'infinity'),
           now() + least(seconds, 300) * interval '1 s', coalesce(wanted, pg_current_snapshot()), f.files
    FROM (
        SELECT coalesce(jsonb_object_agg(c.relname, pg_relation_filenode(c.oid)::bigint), '{}') AS files
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        JOIN pg_class p ON p.oid = i.inhparent
        JOIN pg_namespace n ON n.oid = p.relnamespace
        WHERE n.nspname = 'trioboss' AND p.relname = history AND history IN ('archive', 'attempt')
    ) f
    ON CONFLICT (id) DO UPDATE SET until = EXCLUDED.until
    RETURNING reader.snapshot, reader.files
$$;

-- Bulk loads: the transaction that writes the row of a load releases it, so it is released once.
CREATE TABLE trioboss.load (
    id        text COLLATE "C" PRIMARY KEY,
    name      text COLLATE "C" NOT NULL,         -- the queue
    state     text COLLATE "C" NOT NULL CHECK (state IN ('released', 'refused', 'checked')),
    staged    bigint NOT NULL,
    released  bigint NOT NULL,                   -- the policy refused the other staged ones
    rejected  bigint NOT NULL,
    ended_on  timestamptz NOT NULL DEFAULT now()
);

-- Rows of a load that cannot be jobs, with what is wrong with them and as they came.
CREATE TABLE trioboss.rejected (
    load      text COLLATE "C" NOT NULL REFERENCES trioboss.load ON DELETE CASCADE,
    position  bigint NOT NULL,
    problem   text NOT NULL,
    job       jsonb,
    PRIMARY KEY (load, position)
);

-- The tables in which loads are staged, one for each task; a row here and the table come and go together.
CREATE TABLE trioboss.stage (
    table_name  text COLLATE "C" PRIMARY KEY,
    load        text COLLATE "C" NOT NULL,
    created_on  timestamptz NOT NULL DEFAULT now()
);

-- Their columns. `problem` is why the row is to be rejected; then `data` is the row as it came.
CREATE UNLOGGED TABLE trioboss.stage_row (
    position       bigint NOT NULL,
    id             uuid NOT NULL,
    data           jsonb,
    priority       integer,
    start_after    timestamptz,
    singleton_key  text COLLATE "C",
    options        jsonb,
    problem        text
);

CREATE FUNCTION trioboss.add_stage(load text, table_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF table_name !~ '^stage_[0-9a-f]{32}$' THEN
        RAISE EXCEPTION '% is not a stage', table_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO trioboss.stage (table_name, load) VALUES (add_stage.table_name, add_stage.load);
    EXECUTE format('CREATE UNLOGGED TABLE trioboss.%I (LIKE trioboss.stage_row) WITH (autovacuum_enabled = false)',
                   table_name);
    PERFORM trioboss.copy_rights('trioboss.stage_row', format('trioboss.%I', table_name));
END $$;

CREATE FUNCTION trioboss.drop_stage(table_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF table_name !~ '^stage_[0-9a-f]{32}$' THEN
        RAISE EXCEPTION '% is not a stage', table_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    EXECUTE format('DROP TABLE IF EXISTS trioboss.%I', table_name);
    DELETE FROM trioboss.stage s WHERE s.table_name = drop_stage.table_name;
END $$;

CREATE FUNCTION trioboss.gather_stage(source text, target text, ahead bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO trioboss.%I (position, id, data, priority, start_after, singleton_key, options, problem) '
        'SELECT $1 + position, id, data, priority, start_after, singleton_key, options, problem FROM trioboss.%I',
        target, source) USING ahead;
END $$;

REVOKE ALL ON FUNCTION trioboss.add_stage(text, text), trioboss.drop_stage(text),
                       trioboss.gather_stage(text, text, bigint),
                       trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot) FROM PUBLIC;
