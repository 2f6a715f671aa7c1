"""Where the lifecycle machine works: our own session, two callers with transactions of their own, and a clock.

One more session is patient: what it does may wait for a caller, in a thread of its own.
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
from trioboss.postgres.blocking import open_blocking
from trioboss.postgres.executor import execute_blocking
from trioboss.postgres.operation import Operation
from trioboss.sql import Catalog, qualify
from trioboss.store import Context, Store, make_store

T = TypeVar("T")

OWN = 0
CALLERS = (1, 2)

# Nobody but the patient may wait for anything: the machine leaves out what the model says would wait. So whoever
# waits is a finding, and a machine with one thread must not hang on it.
_NEVER_WAIT = "SET lock_timeout = '3s'"
_IS_WAITING = "SELECT pg_blocking_pids(%s) <> '{}'"
_PATIENCE = 30.0  # seconds; then it hangs

_EMPTY = """
    DELETE FROM trioboss.job; DELETE FROM trioboss.archive; DELETE FROM trioboss.attempt;
    DELETE FROM trioboss.throttle; DELETE FROM trioboss.freed_key; DELETE FROM trioboss.queue;
"""

JOBS = """
    SELECT id, name, policy, state::text, singleton_key, priority, attempt, retry_count, retry_limit, start_after,
           started_on, completed_on, heartbeat_on, source_id,
           gate = 0 AND state < 'active' AND policy IN ('singleton', 'stately', 'key_strict_fifo'), true, seq
    FROM trioboss.job
    UNION ALL
    SELECT id, name, policy, state::text, singleton_key, priority, attempt, retry_count, retry_limit, start_after,
           started_on, completed_on, heartbeat_on, source_id, false, false, seq
    FROM trioboss.archive
    ORDER BY seq
"""


@attrs.frozen
class Row:
    """A job as it stands in the database."""

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
    ready: bool
    hot: bool


@attrs.define(eq=False)
class Desk:
    store: Store
    schema: str
    hands: list[psycopg.Connection[Any]]
    """Our own session, which commits by itself, and the callers, who commit when they are told to."""
    patient: psycopg.Connection[Any]
    """Commits by itself, too."""

    @classmethod
    def open(cls, dsn: str, schema: str = "trioboss") -> "Desk":
        own = open_blocking(dsn)
        hands = [own, *(psycopg.connect(dsn) for _ in CALLERS)]
        for hand in hands:
            hand.execute(_NEVER_WAIT)
            hand.commit()
        return cls(make_store(Context(Catalog(schema))), schema, hands, open_blocking(dsn))

    def close(self) -> None:
        for hand in (*self.hands, self.patient):
            hand.close()

    def clear(self) -> None:
        """Leave nothing of the example before."""
        for caller in CALLERS:
            self.hands[caller].rollback()
        self.hands[OWN].execute(self.named(_EMPTY))
        self.store.context.forget()
        self.store.context.now = None

    @property
    def now(self) -> datetime | None:
        return self.store.context.now

    @now.setter
    def now(self, now: datetime) -> None:
        self.store.context.now = now

    def say(self, hand: int, verb: Callable[[bool], Operation[T]]) -> T:
        """Run a verb, telling it whether the transaction is our own."""
        return execute_blocking(self.hands[hand], verb(hand == OWN), self.hands[OWN])

    def say_patiently(self, verb: Callable[[bool], Operation[T]], end_blocker: Callable[[], None]) -> T:
        """Run a verb that waits for callers: whenever it does, one of them is made to end."""
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(lambda: execute_blocking(self.patient, verb(True), self.patient))
            while self._waits(answer):
                end_blocker()
            return answer.result()

    def _waits(self, answer: Future[Any]) -> bool:
        """True once it waits for somebody, False once it is done."""
        deadline = time.monotonic() + _PATIENCE
        while not answer.done():
            assert time.monotonic() < deadline, "it neither ends nor waits"
            ((waits,),) = self.query(_IS_WAITING, [self.patient.info.backend_pid])
            if waits:
                return True
        return False

    def named(self, text: str) -> str:
        """A statement as it reads in our schema."""
        return qualify(text, self.schema)

    def insert(self, hand: int, queue: str, jobs: list[NewJob]) -> list[UUID]:
        verb = self.store.loading.insert(queue, jobs, keep_ids=True)
        with self.hands[hand].transaction() if hand == OWN else nullcontext():
            return execute_blocking(self.hands[hand], verb, self.hands[OWN]).ids or []

    def query(self, text: str, values: Any = None, hand: int = OWN) -> list[tuple[Any, ...]]:
        return self.hands[hand].execute(self.named(text), values, prepare=True).fetchall()

    def rows(self) -> list[Row]:
        """All committed jobs, live and ended, in order of sending."""
        return [Row(*row[:-1]) for row in self.query(JOBS)]

    def look(self, *questions: str) -> list[list[tuple[Any, ...]]]:
        """Several queries in one round trip."""
        with self.hands[OWN].pipeline():
            cursors = [self.hands[OWN].execute(self.named(each), prepare=True) for each in questions]
        return [cursor.fetchall() for cursor in cursors]
