"""Crowded tables, and what the server says about how it goes through them."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import attrs
import psycopg
from psycopg import sql

from trioboss.api.base import OWN_SETTINGS
from trioboss.postgres.settings import SESSION_SETTINGS
from trioboss.sql import Catalog

CROWD = 100_000

# Before anything is planned: an automatic ANALYZE, or a change of a table, would replace plans that were made early.
PREPARE = """
    ALTER TABLE trioboss.job_common SET (autovacuum_enabled = false);
    ALTER TABLE trioboss.job
        ALTER retry_limit SET DEFAULT 2, ALTER retry_delay SET DEFAULT 0, ALTER retry_backoff SET DEFAULT false,
        ALTER retry_jitter SET DEFAULT 0, ALTER expire_in SET DEFAULT '1 hour', ALTER auto_heartbeat SET DEFAULT true,
        ALTER max_lease_extensions SET DEFAULT 3, ALTER keep_until SET DEFAULT '2100-01-01',
        ALTER delete_after SET DEFAULT '1 day';
"""

# Queue by queue: what stands in the way of the few jobs that a statement is about. Rows that are given a gate
# are taken as they are; the numbers after 100 000 are those few.
LOAD = """
    INSERT INTO trioboss.queue (name, policy, retry_limit, dead_letter) VALUES
        ('dead', 'standard', 0, NULL), ('backlog', 'standard', 2, 'dead'), ('later', 'standard', 2, NULL),
        ('blocked', 'key_strict_fifo', 2, NULL), ('keys', 'key_strict_fifo', 2, NULL), ('busy', 'standard', 2, 'dead');

    -- a long backlog of three priorities
    INSERT INTO trioboss.job (name, policy, gate, priority)
    SELECT 'backlog', 'standard', 0, n % 3 FROM generate_series(1, 100000) n;

    -- deferred jobs, a few of which are due, and a few that never were deferred
    INSERT INTO trioboss.job (name, policy, gate, start_after)
    SELECT 'later', 'standard', CASE WHEN n > 100010 THEN 0 ELSE 3 END,
           now() + CASE WHEN n > 100000 THEN interval '-1 s' ELSE interval '1 s' * n END
    FROM generate_series(1, 100020) n;

    -- one key is blocked by a failed job, and all wait behind it; others are free, or have just arrived
    INSERT INTO trioboss.job (name, policy, gate, state, singleton_key)
    VALUES ('blocked', 'key_strict_fifo', 0, 'failed', 'jam');
    INSERT INTO trioboss.job (name, policy, gate, singleton_key, start_after)
    SELECT 'blocked', 'key_strict_fifo', CASE WHEN n <= 100000 THEN 2 WHEN n <= 100010 THEN 1 ELSE 0 END,
           CASE WHEN n <= 100000 THEN 'jam' ELSE 'k' || n END, now() - interval '1 s'
    FROM generate_series(1, 100020) n;
    INSERT INTO trioboss.freed_key (name, key) VALUES ('blocked', 'jam'), ('blocked', 'k1'), ('blocked', 'k2');

    -- every job has a key of its own
    INSERT INTO trioboss.job (name, policy, gate, singleton_key, start_after)
    SELECT 'keys', 'key_strict_fifo', CASE WHEN n <= 100000 THEN 0 ELSE 1 END, 'k' || n, now() - interval '1 s'
    FROM generate_series(1, 100600) n;

    -- everything is running, in the hands of a hundred workers
    INSERT INTO trioboss.job (
        name, policy, gate, state, attempt, started_on, heartbeat_on, worker, retry_count, dead_letter)
    SELECT 'busy', 'standard', 0, 'active', 1, now(), now(), md5((n % 100)::text)::uuid, n % 2 * 2, 'dead'
    FROM generate_series(1, 100000) n;

    -- a long history
    INSERT INTO trioboss.archive (
        id, name, policy, state, priority, retry_limit, retry_count, retry_delay, retry_backoff, retry_jitter,
        backoff_count, start_after, expire_in, auto_heartbeat, max_lease_extensions, lease_extensions, created_on,
        completed_on, keep_until, delete_after, seq, attempt)
    SELECT gen_random_uuid(), name, policy,
           (CASE WHEN seq % 2 = 0 THEN 'failed' ELSE 'cancelled' END)::trioboss.job_state, priority, retry_limit,
           retry_count, retry_delay, retry_backoff, retry_jitter, backoff_count, start_after, expire_in, auto_heartbeat,
           max_lease_extensions, lease_extensions, created_on, now(), keep_until, delete_after, seq, attempt
    FROM trioboss.job WHERE name = 'backlog';
    INSERT INTO trioboss.throttle (name, key, slot, until, job_id)
    SELECT 'backlog', 'k' || n, now(), now(), gen_random_uuid() FROM generate_series(1, 100000) n;
    INSERT INTO trioboss.sleeper (name, worker) SELECT 'backlog', md5(n::text)::uuid FROM generate_series(1, 100) n;
"""


@attrs.frozen
class Visit:
    """One node of a plan that was run."""

    kind: str
    table: str | None
    rows: float
    discarded: float
    """Rows that were put together and did not match."""


@attrs.frozen
class Journey:
    """How a statement went through the tables."""

    visits: list[Visit]
    buffers: int

    @property
    def discarded(self) -> float:
        return sum(visit.discarded for visit in self.visits)

    def where(self, kind: str) -> list[Visit]:
        return [visit for visit in self.visits if kind in visit.kind]


def _walk(node: dict[str, Any]) -> Iterator[Visit]:
    loops = node["Actual Loops"]
    discarded = node.get("Rows Removed by Join Filter", 0) * loops
    yield Visit(node["Node Type"], node.get("Relation Name"), node["Actual Rows"] * loops, discarded)
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

    def run(self, name: str, **values: object) -> Journey:
        """Run a statement and take it back."""
        if name not in self.prepared:
            self.prepare(name)
        call = self._call(name, values)
        with self.connection.transaction(force_rollback=True):
            explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {}").format(call)
            ((answer,),) = self.connection.execute(explain).fetchall()
        plan = answer[0]["Plan"]
        return Journey(list(_walk(plan)), plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    def _call(self, name: str, values: Mapping[str, object]) -> sql.Composed:
        parameters = self.catalog.get(name).parameters
        assert set(values) <= set(parameters)
        execute = sql.SQL("EXECUTE {}").format(sql.Identifier(name))
        if not parameters:
            return execute
        given = sql.SQL(", ").join(sql.Literal(values.get(parameter)) for parameter in parameters)
        return execute + sql.SQL(" ({})").format(given)

    def ids(self, queue: str, where: str = "true", table: str = "job", limit: int = 10) -> list[UUID]:
        text = f"SELECT id FROM trioboss.{table} WHERE name = %s AND {where} LIMIT {limit}"
        return [id for (id,) in self.connection.execute(text, [queue]).fetchall()]
