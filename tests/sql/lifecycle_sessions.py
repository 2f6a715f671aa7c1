"""The sessions of the lifecycle machine: our own, two callers with transactions of their own, and one that may wait.

Statements get the time from the test. The steps of the waiting session may wait for a caller; it runs in a thread.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import attrs
import psycopg

from trioboss.model.job import NewJob
from trioboss.postgres.blocking import execute_blocking, open_blocking
from trioboss.postgres.operation import Operation
from trioboss.sql import Catalog, qualify
from trioboss.store import Context, Store, make_store

T = TypeVar("T")

OWN = 0
CALLERS = (1, 2)

# Only the waiting session may wait: the machine leaves out what would wait according to the model. So a statement
# that waits elsewhere is a finding, and must not hang a machine that has one thread.
_NEVER_WAIT = "SET lock_timeout = '3s'"
_IS_WAITING = "SELECT pg_blocking_pids(%s) <> '{}'"
_TIMEOUT = 30.0  # seconds

_EMPTY = """
    DELETE FROM trioboss.live_job; DELETE FROM trioboss.archive; DELETE FROM trioboss.attempt;
    DELETE FROM trioboss.throttle; DELETE FROM trioboss.backlog_check; DELETE FROM trioboss.queue;
"""

# Jobs in order of sending. The view has the states and options that users see, the table what they are made of.
JOBS = """
    SELECT v.id, v.name, v.policy, v.state, v.singleton_key, v.priority, v.attempt, v.retry_count, v.retry_limit,
           v.start_after, v.started_on, v.completed_on, v.heartbeat_on, v.source_id, v.readiness,
           j.owner IS NOT NULL, v.live
    FROM trioboss.all_jobs v
    LEFT JOIN trioboss.live_job j ON j.queue = v.name AND j.id = v.id AND v.live
    ORDER BY v.seq
"""


@attrs.frozen
class Row:
    """A job in the database."""

    id: UUID
    queue: str
    policy: str
    state: str
    key: str | None
    priority: int
    attempt: int
    retry_count: int
    retry_limit: int
    start_after: datetime
    started_on: datetime | None
    completed_on: datetime | None
    heartbeat_on: datetime | None
    source_id: UUID | None
    readiness: str
    owns_key: bool
    live: bool


@attrs.define(eq=False)
class Sessions:
    """Connections to one schema, and a store whose operations they run."""

    store: Store
    schema: str
    connections: list[psycopg.Connection[Any]]
    """Our own session, which commits each batch, and the callers, which commit when the test says so."""
    waiting: psycopg.Connection[Any]
    """Commits each batch, too."""

    @classmethod
    def open(cls, dsn: str, schema: str = "trioboss") -> "Sessions":
        connections = [open_blocking(dsn), *(psycopg.connect(dsn) for _ in CALLERS)]
        for connection in connections:
            connection.execute(_NEVER_WAIT)
            connection.commit()
        return cls(make_store(Context(Catalog(schema))), schema, connections, open_blocking(dsn))

    def close(self) -> None:
        for connection in (*self.connections, self.waiting):
            connection.close()

    def clear(self) -> None:
        """Leave nothing of the example before."""
        for caller in CALLERS:
            self.connections[caller].rollback()
        self.own.execute(_NEVER_WAIT)
        self.own.execute(self.qualified(_EMPTY))
        self.store.context.forget()
        self.store.context.now = None

    @property
    def own(self) -> psycopg.Connection[Any]:
        return self.connections[OWN]

    @property
    def now(self) -> datetime | None:
        return self.store.context.now

    @now.setter
    def now(self, now: datetime) -> None:
        self.store.context.now = now

    def run(self, session: int, operation: Callable[[bool], Operation[T]]) -> T:
        """Run an operation; it is told whether the transaction is our own."""
        return execute_blocking(self.connections[session], operation(session == OWN), self.own)

    def run_waiting(self, operation: Callable[[bool], Operation[T]], end_blocker: Callable[[], None]) -> T:
        """Run an operation that waits for callers: each time it waits, one of them is made to end."""
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(lambda: execute_blocking(self.waiting, operation(True), self.waiting))
            while self._waits(answer):
                end_blocker()
            return answer.result()

    def _waits(self, answer: Future[Any]) -> bool:
        """True once it waits for another session, False once it is done."""
        deadline = time.monotonic() + _TIMEOUT
        while not answer.done():
            assert time.monotonic() < deadline, "the operation neither ends nor waits"
            ((waits,),) = self.query(_IS_WAITING, [self.waiting.info.backend_pid])
            if waits:
                return True
        return False

    def qualified(self, text: str) -> str:
        """A statement in the schema of these sessions."""
        return qualify(text, self.schema)

    def insert(self, session: int, queue: str, jobs: list[NewJob]) -> list[UUID]:
        """Send many jobs at once; return the ids of those that were sent."""
        load = self.store.loading.insert(queue, jobs, keep_ids=True)
        with self.own.transaction() if session == OWN else nullcontext():
            return execute_blocking(self.connections[session], load, self.own).ids or []

    def query(self, text: str, values: Any = None, session: int = OWN) -> list[tuple[Any, ...]]:
        return self.connections[session].execute(self.qualified(text), values, prepare=True).fetchall()

    def rows(self) -> list[Row]:
        """All committed jobs, live and ended, in order of sending."""
        return [Row(*row) for row in self.query(JOBS)]

    def query_all(self, *queries: str) -> list[list[tuple[Any, ...]]]:
        """Several queries in one round trip."""
        with self.own.pipeline():
            cursors = [self.own.execute(self.qualified(each), prepare=True) for each in queries]
        return [cursor.fetchall() for cursor in cursors]
