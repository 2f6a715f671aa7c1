"""Threads that work on one queue at the same time, and the tables in which they record what they committed.

Every error that leaves an operation ends its thread and fails the test, except a deadlock between two callers.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import attrs
import psycopg

from trioboss.errors import JobNotFound
from trioboss.model.job import Lease
from trioboss.model.settle_and_claim import ClaimRequest, Failure
from trioboss.postgres.blocking import execute_blocking, open_blocking
from trioboss.postgres.operation import Batch, Operation
from trioboss.sql import Catalog
from trioboss.store import Context, Store, make_store

T = TypeVar("T")

QUEUE, DEAD = "busy", "dead"

# The oracle counts the commits of each key: a sender locks the row of its key just before it commits, so the numbers
# are in the order of commits, by whatever means the product keeps its own order.
_RECORDS = """
    CREATE TABLE oracle (key text PRIMARY KEY, n int NOT NULL);
    CREATE TABLE sent (id uuid PRIMARY KEY, key text, n int NOT NULL, began float8 NOT NULL, deferred boolean NOT NULL);
    CREATE TABLE committed (id uuid PRIMARY KEY, at float8 NOT NULL);
    CREATE TABLE changed (id uuid NOT NULL, how text NOT NULL);
"""


def _as_on_the_pool(operation: Operation[T]) -> Operation[T]:
    """The operation, without the results of follow-ups, which a blocking connection also returns."""
    results: Any = None
    error: Exception | None = None
    while True:
        try:
            request = operation.send(results) if error is None else operation.throw(error)
        except StopIteration as end:
            return end.value
        try:
            results, error = (yield request), None
        except Exception as raised:
            results, error = None, raised
        if isinstance(request, Batch) and results is not None:
            results = results[: len(request.transactions)]


@attrs.define(eq=False)
class Hand:
    """The means of one thread: a session of ours, a session of a caller, and a random generator."""

    own: psycopg.Connection[Any]
    caller: psycopg.Connection[Any]
    store: Store
    random: random.Random

    def run(self, operation: Callable[[bool], Operation[T]], *, own: bool = True) -> T:
        connection = self.own if own else self.caller
        return execute_blocking(connection, _as_on_the_pool(operation(own)), self.own)

    @contextmanager
    def transaction(self, rolls_back: float, *, may_deadlock: bool = False) -> Iterator[None]:
        """A transaction of the caller that takes its time, and is rolled back now and then.

        Callers that change several jobs may wait for each other in a cycle, which the server breaks; workers never do.
        """
        try:
            yield
            self.pause()
            if self.random.random() < rolls_back:
                self.caller.rollback()
            self.caller.commit()
        except BaseException as error:
            self.caller.rollback()
            if not (may_deadlock and isinstance(error, psycopg.errors.DeadlockDetected)):
                raise

    def pause(self, longest: float = 0.003) -> None:
        # The time between a statement and its commit is the subject of these tests.
        time.sleep(self.random.random() * longest)

    def close(self) -> None:
        self.own.close()
        self.caller.close()


@attrs.define(eq=False)
class Arena:
    """A queue, a dead letter queue, and the threads that use them."""

    dsn: str
    seed: int
    keys: list[str | None] = attrs.field(factory=lambda: [f"key{number}" for number in range(8)])
    errors: list[BaseException] = attrs.field(factory=list, init=False)
    is_over: threading.Event = attrs.field(factory=threading.Event, init=False)
    """Senders and changers have ended."""
    counts: dict[str, int] = attrs.field(factory=dict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def prepare(self, **options: Any) -> None:
        with self.hand("setup") as hand:
            hand.own.execute(_RECORDS)
            dead = {"policy": options.pop("dead_policy", "standard")}
            hand.run(lambda own: hand.store.queues.create(DEAD, dead))
            options = {"expire_in": 0.2, "dead_letter": DEAD, **options}
            hand.run(lambda own: hand.store.queues.create(QUEUE, options))

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + number

    @contextmanager
    def hand(self, name: str) -> Iterator[Hand]:
        own, caller = open_blocking(self.dsn), psycopg.connect(self.dsn)
        # Nothing may wait for long here, and a test must not hang.
        for connection in (own, caller):
            connection.execute("SET lock_timeout = '20s'")
            connection.execute("SET statement_timeout = '30s'")
            connection.commit()
        store = make_store(Context(Catalog("trioboss")))
        hand = Hand(own, caller, store, random.Random(f"{self.seed} {name}"))
        try:
            yield hand
        finally:
            hand.close()

    def run(
        self, busy: dict[str, Callable[[Hand], None]], background: dict[str, Callable[[Hand], None]]
    ) -> None:
        """Run all threads until the busy ones end; then the others are told to end."""
        threads = {name: self._thread(name, work) for name, work in busy.items()}
        others = {name: self._thread(name, work) for name, work in background.items()}
        for thread in (*threads.values(), *others.values()):
            thread.start()
        for thread in threads.values():
            thread.join()
        self.is_over.set()
        for thread in others.values():
            thread.join()
        if self.errors:
            raise BaseExceptionGroup("in the arena", self.errors)

    def _thread(self, name: str, work: Callable[[Hand], None]) -> threading.Thread:
        return threading.Thread(target=self._guard, args=(name, work))

    def _guard(self, name: str, work: Callable[[Hand], None]) -> None:
        try:
            with self.hand(name) as hand:
                work(hand)
        except BaseException as error:
            error.add_note(f"in {name}")
            self.errors.append(error)


# -- what ends leases, and the end


@attrs.frozen
class Rescuer:
    """Ends the leases that ran out."""

    arena: Arena

    def __call__(self, hand: Hand) -> None:
        while not self.arena.is_over.is_set():
            try:
                self.arena.count("expired", end_expired(hand, QUEUE))
            except psycopg.errors.DeadlockDetected:
                # A dispatcher settles several of these jobs right now, in another order. The next round tries again.
                self.arena.count("deadlock")
            hand.pause(0.02)


def end_expired(hand: Hand, queue: str) -> int:
    """End the leases that ran out; return how many."""
    over = hand.own.execute(
        "SELECT id, attempt, started_on FROM trioboss.live_job"
        " WHERE queue = %s AND readiness = 'active' AND expires_on < clock_timestamp()",
        [queue],
    ).fetchall()
    failed = [(Lease(*row), Failure(outcome="expired")) for row in over]
    return len(hand.run(lambda own: hand.store.settling.fail_leases(queue, failed))) if failed else 0


def drain(hand: Hand, queue: str, seconds: float = 120.0) -> int:
    """Complete everything that can run; jobs that failed and block their key are retried. Returns how many ended.

    Leases that nobody ends expire, and the delays of deferred jobs are short.
    """
    operation = hand.store.manual.complete
    done, idle_since = 0, time.monotonic()
    deadline = idle_since + seconds
    while time.monotonic() < deadline:
        hand.own.execute(
            "UPDATE trioboss.live_job SET expires_on = now() - interval '1 s'"
            " WHERE queue = %s AND readiness = 'active'",
            [queue],
        )
        end_expired(hand, queue)
        blocking = "SELECT id FROM trioboss.live_job WHERE queue = %s AND readiness = 'ended'"
        if failed := [id for (id,) in hand.own.execute(blocking, [queue])]:
            retry_or_delete(hand, queue, failed)
        request = ClaimRequest(1000)
        jobs = list(
            hand.run(lambda own, request=request: hand.store.claiming.claim(queue, request, own=own)).jobs
        )
        if jobs:
            done += hand.run(lambda own, jobs=jobs: operation(queue, jobs, None, own=own)).affected
            idle_since = time.monotonic()
        elif not failed:
            ((left,),) = hand.own.execute(
                "SELECT count(*) FROM trioboss.live_job WHERE queue = %s", [queue]
            ).fetchall()
            if not left or time.monotonic() > idle_since + 3:  # longer than any delay
                break
            time.sleep(0.05)
    return done


def retry_or_delete(hand: Hand, queue: str, ids: list[Any]) -> None:
    """Unblock keys: retry the failed jobs, and delete those whose slot is taken."""
    try:
        hand.run(lambda own: hand.store.changing.retry(queue, ids, own=own))
    except JobNotFound:
        hand.run(lambda own: hand.store.changing.delete(queue, ids, own=own))
        for id in ids:
            hand.own.execute("INSERT INTO changed VALUES (%s, 'delete')", [id])
