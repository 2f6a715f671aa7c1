"""Threads that send, work and meddle at the same time, and the tables in which they write down what they did."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import attrs
import psycopg

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.settle_and_claim import ClaimRequest, Failure
from trioboss.postgres.blocking import open_blocking
from trioboss.postgres.executor import execute_blocking
from trioboss.postgres.operation import Operation
from trioboss.sql import Catalog
from trioboss.store import Context, Store, make_store

T = TypeVar("T")

KEYS = [f"key{number}" for number in range(8)]
QUEUE = "busy"

# The oracle counts the commits of each key: whoever has sent to a key locks its row just before the commit, so the
# numbers are in the order of commits, by whatever means the product keeps its own order.
_NOTEBOOK = """
    CREATE TABLE oracle (key text PRIMARY KEY, n int NOT NULL);
    CREATE TABLE sent (id uuid PRIMARY KEY, key text NOT NULL, n int NOT NULL, began float8 NOT NULL);
    CREATE TABLE ended (id uuid PRIMARY KEY, committed float8 NOT NULL);
    CREATE TABLE meddled (id uuid NOT NULL, verb text NOT NULL);
"""
_COUNT = "INSERT INTO oracle VALUES (%s, 1) ON CONFLICT (key) DO UPDATE SET n = oracle.n + 1 RETURNING n"


@attrs.define(eq=False)
class Hand:
    """One thread's means: a session of ours, a session of a caller, and its own luck."""

    own: psycopg.Connection[Any]
    caller: psycopg.Connection[Any]
    store: Store
    luck: random.Random

    def say(self, verb: Callable[[bool], Operation[T]], *, own: bool = True) -> T:
        return execute_blocking(self.own if own else self.caller, verb(own), self.own)

    @contextmanager
    def transaction(self, rolls_back: float, *, may_deadlock: bool = False) -> Iterator[None]:
        """A transaction of the caller that takes its time, and fails now and then.

        Callers who change several jobs may get into a circle, which the server breaks; workers never do.
        """
        try:
            yield
            self.pause()
            if self.luck.random() < rolls_back:
                self.caller.rollback()
            self.caller.commit()
        except BaseException as error:
            self.caller.rollback()
            if not (may_deadlock and isinstance(error, psycopg.errors.DeadlockDetected)):
                raise

    def pause(self) -> None:
        # The gap between a statement and its commit is what these tests are about.
        time.sleep(self.luck.random() * 0.003)

    def close(self) -> None:
        self.own.close()
        self.caller.close()


@attrs.define(eq=False)
class Arena:
    """A queue, and who is busy with it."""

    dsn: str
    seed: int
    errors: list[BaseException] = attrs.field(factory=list, init=False)
    done: threading.Event = attrs.field(factory=threading.Event, init=False)
    """The senders and meddlers have gone home."""

    def prepare(self, **options: Any) -> None:
        with self.hand("setup") as hand:
            hand.own.execute(_NOTEBOOK)
            hand.say(lambda own: hand.store.queues.create(QUEUE, {"expire_in": 0.2, **options}))

    @contextmanager
    def hand(self, name: str) -> Iterator[Hand]:
        own, caller = open_blocking(self.dsn), psycopg.connect(self.dsn)
        # Nobody may wait for long here; a test that hangs says nothing.
        for connection in (own, caller):
            connection.execute("SET lock_timeout = '10s'")
            connection.execute("SET statement_timeout = '20s'")
            connection.commit()
        hand = Hand(
            own, caller, make_store(Context(Catalog("trioboss"))), random.Random(f"{self.seed} {name}")
        )
        try:
            yield hand
        finally:
            hand.close()

    def run(
        self, busy: dict[str, Callable[[Hand], None]], background: dict[str, Callable[[Hand], None]]
    ) -> None:
        """Let all work until the busy ones are done, and the others until they are told so."""
        threads = {
            name: threading.Thread(target=self._guard, args=(name, work)) for name, work in busy.items()
        }
        others = {
            name: threading.Thread(target=self._guard, args=(name, work)) for name, work in background.items()
        }
        for thread in (*threads.values(), *others.values()):
            thread.start()
        for thread in threads.values():
            thread.join()
        self.done.set()
        for thread in others.values():
            thread.join()
        if self.errors:
            raise BaseExceptionGroup("in the arena", self.errors)

    def _guard(self, name: str, work: Callable[[Hand], None]) -> None:
        try:
            with self.hand(name) as hand:
                work(hand)
        except BaseException as error:
            error.add_note(f"in {name}")
            self.errors.append(error)


# -- who is there


@attrs.frozen
class Sender:
    """Sends in transactions: one job, some, or a bulk load."""

    turns: int = 40

    def __call__(self, hand: Hand) -> None:
        order = self._order(hand)
        for _ in range(self.turns):
            began = time.monotonic()
            keys = sorted(hand.luck.choices(KEYS, k=hand.luck.choice((1, 1, 2, 3, 8))), key=order.get)
            bulk, ids = hand.luck.random() < 0.2, []
            with hand.transaction(rolls_back=0.15, may_deadlock=True):
                ids = self._insert(hand, keys) if bulk else self._send(hand, keys)
                hand.pause()
                for id, key in ids:
                    ((n,),) = hand.caller.execute(_COUNT, [key]).fetchall()
                    hand.caller.execute("INSERT INTO sent VALUES (%s, %s, %s, %s)", [id, key, n, began])
            self._note_commit(hand, [id for id, _ in ids])

    def _order(self, hand: Hand) -> dict[str, Any]:
        """The order in which bulk loads take keys: who takes them in another waits for others in a circle."""
        ((policy,),) = hand.own.execute(
            "SELECT policy FROM trioboss.queue WHERE name = %s", [QUEUE]
        ).fetchall()
        if policy != "key_strict_fifo":
            return {key: key for key in KEYS}
        turns = "SELECT key, trioboss.turn(%s, key) FROM unnest(%s::text[]) key"
        return dict(hand.own.execute(turns, [QUEUE, KEYS]).fetchall())

    def _send(self, hand: Hand, keys: list[str]) -> list[tuple[UUID, str]]:
        sent = []
        for key in keys:
            job = NewJob(priority=hand.luck.choice((0, 0, 1)), singleton_key=key)
            if id := hand.say(lambda own, job=job: hand.store.sending.send(QUEUE, job, own=own), own=False):
                sent.append((id, key))
                hand.pause()
        return sent

    def _insert(self, hand: Hand, keys: list[str]) -> list[tuple[UUID, str]]:
        jobs = [{"data": key, "singleton_key": key} for key in keys]
        loaded = hand.say(lambda own: hand.store.loading.insert(QUEUE, jobs, keep_ids=True), own=False)
        rows = hand.caller.execute(
            "SELECT id, singleton_key FROM trioboss.job WHERE id = ANY (%s) ORDER BY seq", [loaded.ids]
        )
        return rows.fetchall()

    def _note_commit(self, hand: Hand, ids: list[UUID]) -> None:
        committed = time.monotonic()
        hand.own.execute("INSERT INTO ended SELECT id, %s FROM sent WHERE id = ANY (%s)", [committed, ids])


@attrs.frozen
class Meddler:
    """Cancels, deletes, resumes and retries, in transactions, some of which never happened."""

    turns: int = 40

    def __call__(self, hand: Hand) -> None:
        for _ in range(self.turns):
            verb = hand.luck.choice(("cancel", "delete", "resume", "retry", "retry", "retry"))
            ids = sorted(self._find(hand, verb))
            try:
                with hand.transaction(rolls_back=0.3, may_deadlock=True):
                    change = getattr(hand.store.settling, verb)
                    settled = hand.say(lambda own, c=change, i=ids: c(QUEUE, i, own=own), own=False)
                    for id in settled.ids:
                        hand.caller.execute("INSERT INTO meddled VALUES (%s, %s)", [id, verb])
            except JobNotFound:
                hand.pause()

    def _find(self, hand: Hand, verb: str) -> list[UUID]:
        states = {"resume": ["cancelled"], "retry": ["failed"]}.get(
            verb, ["created", "retry", "active", "failed"]
        )
        rows = hand.own.execute(
            "SELECT id FROM trioboss.all_jobs WHERE state::text = ANY (%s) ORDER BY id LIMIT 50", [states]
        ).fetchall()
        found = [id for (id,) in rows]
        return hand.luck.sample(found, min(len(found), hand.luck.choice((1, 1, 2)))) or [UUID(int=1)]


@attrs.frozen
class Worker:
    """Claims, and does with its jobs what workers do, good and bad."""

    arena: Arena

    def __call__(self, hand: Hand) -> None:
        while not self.arena.done.is_set():
            jobs = self.claim(hand)
            if jobs:
                hand.luck.choice(
                    (self.complete, self.complete, self.fail, self.release, self.crash, self.dither)
                )(hand, jobs)
            else:
                hand.pause()

    def claim(self, hand: Hand) -> list[Job]:
        wanted = ClaimRequest(hand.luck.choice((1, 2, 5)), by_priority=hand.luck.random() < 0.8)
        if hand.luck.random() < 0.1:
            with hand.transaction(rolls_back=0.5):
                return hand.say(lambda own: hand.store.claiming.claim(QUEUE, wanted, own=own), own=False).jobs
        return hand.say(lambda own: hand.store.claiming.claim(QUEUE, wanted, own=own)).jobs

    def complete(self, hand: Hand, jobs: list[Job]) -> None:
        self._settle(hand, lambda own: hand.store.settling.complete(QUEUE, jobs, None, own=own))

    def fail(self, hand: Hand, jobs: list[Job]) -> None:
        for job in jobs:
            self._settle(hand, lambda own, job=job: hand.store.settling.touch(QUEUE, job, own=own))
        self._settle(hand, lambda own: hand.store.settling.fail(QUEUE, jobs, "an error", own=own))

    def release(self, hand: Hand, jobs: list[Job]) -> None:
        leases = [Lease(job.id, job.attempt, job.started_on) for job in jobs]
        hand.say(lambda own: hand.store.settling.release_leases(QUEUE, leases))

    def crash(self, hand: Hand, jobs: list[Job]) -> None:
        """The lease runs out."""

    def dither(self, hand: Hand, jobs: list[Job]) -> None:
        """Complete in a transaction that takes time, and may not happen."""
        for job in sorted(jobs, key=lambda job: job.id):
            try:
                with hand.transaction(rolls_back=0.5):
                    hand.say(
                        lambda own, job=job: hand.store.settling.complete(QUEUE, job, None, own=own),
                        own=False,
                    )
            except LeaseLost:
                hand.pause()

    def _settle(self, hand: Hand, verb: Callable[[bool], Operation[Any]]) -> None:
        try:
            hand.say(verb)
        except LeaseLost:
            hand.pause()


@attrs.frozen
class Reaper:
    """Ends the leases that ran out."""

    arena: Arena

    def __call__(self, hand: Hand) -> None:
        while not self.arena.done.is_set():
            reap(hand)
            hand.pause()


def reap(hand: Hand) -> None:
    over = hand.own.execute(
        "SELECT id, attempt, started_on FROM trioboss.job"
        " WHERE state = 'active' AND started_on + expire_in < clock_timestamp()"
    ).fetchall()
    failed = [(Lease(*row), Failure(outcome="expired")) for row in over]
    if failed:
        hand.say(lambda own: hand.store.settling.fail_leases(QUEUE, failed))
