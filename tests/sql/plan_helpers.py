"""Full tables, and how the server goes through them."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import attrs
import psycopg
from psycopg import sql

from trioboss.api.base import OWN_SETTINGS
from trioboss.postgres.settings import SESSION_SETTINGS
from trioboss.sql import Catalog

MANY = 100_000

# Before anything is planned: an automatic ANALYZE, or a change of a table, would replace plans that were made early.
PREPARE = """
    ALTER TABLE trioboss.live_job_common SET (autovacuum_enabled = false);
    ALTER TABLE trioboss.backlog_check SET (autovacuum_enabled = false);
"""

# Queue by queue: what stands in the way of the few jobs that a statement is about. Rows with a readiness are taken as
# they are; the numbers after 40 000 are those few.
LOAD = """
    INSERT INTO trioboss.queue (name, policy, retry_limit, dead_letter) VALUES
        ('dead', 'standard', 0, NULL), ('backlog', 'standard', 2, 'dead'), ('later', 'standard', 2, NULL),
        ('blocked', 'key_strict_fifo', 2, NULL), ('arrivals', 'singleton', 2, NULL),
        ('keys', 'key_strict_fifo', 2, NULL),
        ('later_keys', 'singleton', 2, NULL), ('busy', 'standard', 2, 'dead'), ('busy_keys', 'singleton', 2, 'dead');
    UPDATE trioboss.queue SET keep_completed = false WHERE name = 'busy_keys';

    -- a long backlog of three priorities
    INSERT INTO trioboss.live_job (queue, readiness, priority)
    SELECT 'backlog', 'ready', n % 3 FROM generate_series(1, 40000) n;

    -- deferred jobs, a few of which are due, and a few that never were deferred
    INSERT INTO trioboss.live_job (queue, readiness, start_after)
    SELECT 'later', (CASE WHEN n > 40010 THEN 'ready' ELSE 'deferred' END)::trioboss.readiness,
           now() + CASE WHEN n > 40000 THEN interval '-1 s' ELSE interval '1 s' * n END
    FROM generate_series(1, 40020) n;
    INSERT INTO trioboss.live_job (queue, readiness, start_after, key, backlog)
    SELECT 'later_keys', 'deferred', now() + CASE WHEN n > 40000 THEN interval '-1 s' ELSE interval '1 s' * n END,
           'k' || n, 'key:k' || n
    FROM generate_series(1, 40020) n;

    -- one key is blocked by a failed job, and all wait behind it; their checks are answered. Others are free.
    INSERT INTO trioboss.live_job (queue, readiness, attempt, key, backlog, owner)
    VALUES ('blocked', 'ended', 1, 'jam', 'key:jam', 'key:jam');
    INSERT INTO trioboss.live_job (queue, readiness, key, backlog)
    SELECT 'blocked', 'waiting', k, 'key:' || k
    FROM (SELECT CASE WHEN n <= 40000 THEN 'jam' ELSE 'k' || n END AS k FROM generate_series(1, 40020) n) n;
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, 0, queue, backlog FROM trioboss.live_job
    WHERE queue = 'blocked' AND readiness = 'waiting' AND key <> 'jam';
    INSERT INTO trioboss.backlog_check (queue, backlog) VALUES ('blocked', 'key:jam'), ('blocked', 'key:k40001');

    -- every job has a key of its own, and a check
    INSERT INTO trioboss.live_job (queue, readiness, key, backlog)
    SELECT 'keys', 'waiting', 'k' || n, 'key:k' || n FROM generate_series(1, 40000) n;
    -- jobs of a hundred keys with owners have just arrived, before a few of free keys
    INSERT INTO trioboss.live_job (queue, readiness, attempt, started_on, expires_on, key, backlog, owner)
    SELECT 'arrivals', 'active', 1, now(), now() + interval '1 hour', 'k' || n, 'key:k' || n, 'key:k' || n
    FROM generate_series(1, 100) n;
    INSERT INTO trioboss.live_job (queue, readiness, key, backlog)
    SELECT 'arrivals', 'waiting', k, 'key:' || k
    FROM (SELECT 'k' || CASE WHEN n <= 40000 THEN 1 + n % 100 ELSE n END AS k FROM generate_series(1, 40020) n) n;
    INSERT INTO trioboss.backlog_check (seq, priority, queue, backlog)
    SELECT seq, priority, queue, backlog FROM trioboss.live_job
    WHERE queue IN ('keys', 'arrivals') AND readiness = 'waiting' ORDER BY seq;

    -- everything is running, leased to a hundred workers
    INSERT INTO trioboss.live_job (
        queue, readiness, attempt, started_on, expires_on, heartbeat_on, worker, retry_count, options)
    SELECT 'busy', 'active', 1, now(), now() + interval '1 hour', now(), md5((n % 100)::text)::uuid, n % 2 * 2,
           '{"expire_in": 3600}'
    FROM generate_series(1, 40000) n;
    INSERT INTO trioboss.live_job (
        queue, readiness, attempt, started_on, expires_on, worker, key, backlog, owner, retry_count)
    SELECT 'busy_keys', 'active', 1, now(), now() + interval '1 hour', md5((n % 100)::text)::uuid, 'k' || n,
        'key:k' || n,
           'key:k' || n, n % 2 * 2
    FROM generate_series(1, 20000) n;

    -- a long history, over two weeks: most jobs completed, the others failed or were cancelled
    DO $$ BEGIN PERFORM trioboss.add_days((now() AT TIME ZONE 'UTC')::date - 13, 20); END $$;
    INSERT INTO trioboss.archive (
        seq, created_on, start_after, started_on, completed_on, id, priority, attempt, retry_count, outcome, queue)
    SELECT n, d, d, d, d, gen_random_uuid(), 0, 1, 0,
           (CASE WHEN n % 50 = 0 THEN 'failed' WHEN n % 50 = 2 THEN 'cancelled' ELSE 'completed' END)::trioboss.outcome,
           CASE WHEN n % 2 = 0 THEN 'backlog' ELSE 'history' END
    FROM generate_series(1, 80000) n, LATERAL (SELECT now() - (n % 14) * interval '1 day' AS d) t;
    INSERT INTO trioboss.throttle (queue, key, slot, until, job_id)
    SELECT 'backlog', 'k' || n, now(), now(), gen_random_uuid() FROM generate_series(1, 40000) n;
    INSERT INTO trioboss.idle_dispatcher (queue, worker)
    SELECT queue, md5(n::text)::uuid FROM generate_series(1, 100) n, unnest(ARRAY['backlog', 'keys']) queue;
"""

TABLES = "trioboss.live_job_common, trioboss.archive, trioboss.throttle, trioboss.backlog_check"


@attrs.frozen
class Node:
    """One node of a plan that was run."""

    kind: str
    table: str | None
    index: str | None
    rows: float
    discarded: float
    """Rows that were joined and did not match."""
    filtered: float
    """Rows that were read and did not match a filter."""


@attrs.frozen
class Plan:
    """How a statement went through the tables."""

    nodes: list[Node]
    buffers: int

    @property
    def discarded(self) -> float:
        return sum(node.discarded for node in self.nodes)

    @property
    def indexes(self) -> set[str]:
        """The indexes that the statement has used to read rows, named as those of the partitioned tables."""
        return {node.index for node in self.nodes if node.index is not None}

    def of_kind(self, kind: str) -> list[Node]:
        return [node for node in self.nodes if kind in node.kind]

    def rows_of(self, *tables: str) -> float:
        """How many rows it has read of these tables."""
        return sum(node.rows + node.filtered for node in self.nodes if node.table in tables)


def _walk(node: Mapping[str, Any]) -> Iterator[Node]:
    loops = node["Actual Loops"]
    discarded = node.get("Rows Removed by Join Filter", 0) * loops
    filtered = (node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)) * loops
    rows = node["Actual Rows"] * loops
    if loops:
        yield Node(
            node["Node Type"], node.get("Relation Name"), node.get("Index Name"), rows, discarded, filtered
        )
    for child in node.get("Plans", ()):
        yield from _walk(child)


@attrs.define(eq=False)
class Planner:
    """A session with the settings of our pool, and every statement prepared and planned in it."""

    connection: psycopg.Connection[Any]
    made: str
    """When its plans were made."""
    catalog: Catalog = Catalog("trioboss")
    prepared: set[str] = attrs.field(factory=set)
    executed: set[str] = attrs.field(factory=set)

    @classmethod
    def open(cls, dsn: str, made: str) -> "Planner":
        connection = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
        for name, value in ({s.name: s.value for s in SESSION_SETTINGS} | OWN_SETTINGS).items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        return cls(connection, made)

    @property
    def version(self) -> int:
        return self.connection.info.server_version // 10_000

    def prepare(self, name: str) -> None:
        text = sql.SQL(self.catalog.get(name).text)  # type: ignore[arg-type]
        self.connection.execute(sql.SQL("PREPARE {} AS {}").format(sql.Identifier(name), text))
        self.connection.execute(sql.SQL("EXPLAIN {}").format(self._call(name, {})))  # now it is planned
        self.prepared.add(name)

    def run(self, name: str, **values: object) -> Plan:
        """Run a statement and take it back."""
        if name not in self.prepared:
            self.prepare(name)
        call = self._call(name, values)
        if name not in self.executed:
            # A session's first execution also reads the catalogs: triggers, functions, types. It is not counted.
            with self.connection.transaction(force_rollback=True):
                self.connection.execute(call)
            self.executed.add(name)
        with self.connection.transaction(force_rollback=True):
            explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {}").format(call)
            ((answer,),) = self.connection.execute(explain).fetchall()
        plan = answer[0]["Plan"]
        return Plan(list(_walk(plan)), plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    def _call(self, name: str, values: Mapping[str, object]) -> sql.Composed:
        parameters = self.catalog.get(name).parameters
        assert set(values) <= set(parameters)
        execute = sql.SQL("EXECUTE {}").format(sql.Identifier(name))
        if not parameters:
            return execute
        given = sql.SQL(", ").join(sql.Literal(values.get(parameter)) for parameter in parameters)
        return execute + sql.SQL(" ({})").format(given)

    def ids(self, queue: str, where: str, table: str, limit: int) -> list[UUID]:
        text = f"SELECT id FROM trioboss.{table} WHERE queue = %s AND {where} LIMIT {limit}"
        return [id for (id,) in self.connection.execute(text, [queue]).fetchall()]

    def index_of(self, leaf: str) -> str:
        """The index of the partitioned table that an index of one of its tables belongs to."""
        parent = "SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = %s::regclass"
        found = self.connection.execute(parent, [f"trioboss.{leaf}"]).fetchone()
        return found[0].removeprefix("trioboss.") if found else leaf
