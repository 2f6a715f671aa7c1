"""The threads that work on one queue: senders, changers, plain SQL writers and dispatchers, good and bad."""

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import attrs
import psycopg
from concurrency_helpers import QUEUE, Arena, Hand

from trioboss.errors import JobNotFound, LeaseLost
from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.settle_and_claim import ClaimRequest, Failure, Settlements

_COUNT = "INSERT INTO oracle VALUES (%s, 1) ON CONFLICT (key) DO UPDATE SET n = oracle.n + 1 RETURNING n"

Sent = tuple[UUID, str | None, bool]
"""A job that was sent: its id, its key, and whether it is deferred."""


def goes_on(rounds: int | None, until: float | None) -> Callable[[int], bool]:
    """Whether a thread goes on: for so many rounds, or until that time."""
    return lambda round_number: (
        round_number < rounds if rounds is not None else time.monotonic() < (until or 0)
    )


@attrs.frozen
class Sender:
    """Sends in transactions, some of which are rolled back: one job, some, a bulk load, or plain SQL."""

    arena: Arena
    rounds: int | None = None
    until: float | None = None

    def __call__(self, hand: Hand) -> None:
        order = self._order(hand)
        on, round_number = goes_on(self.rounds, self.until), 0
        while on(round_number):
            round_number += 1
            began = time.monotonic()
            keys = sorted(
                hand.random.choices(self.arena.keys, k=hand.random.choice((1, 1, 2, 3, 8))), key=order.get
            )
            way = hand.random.choice((self._send, self._send, self._send, self._insert, self._insert_rows))
            sent: list[Sent] = []
            with hand.transaction(rolls_back=0.2, may_deadlock=True):
                sent = way(hand, keys)
                hand.pause()
                self._record(hand, sent, began)
            self._record_commit(hand, [id for id, _, _ in sent])
            hand.pause()

    def _order(self, hand: Hand) -> dict[str | None, Any]:
        """The order in which bulk loads take the locks of keys: another order would make a cycle."""
        ((policy,),) = hand.own.execute(
            "SELECT policy FROM trioboss.queue WHERE name = %s", [QUEUE]
        ).fetchall()
        if policy != "key_strict_fifo":
            return {key: key or "" for key in self.arena.keys}
        locks = (
            "SELECT key, trioboss.key_lock(%s, key, (SELECT seed FROM trioboss.lock_seed))"
            " FROM unnest(%s::text[]) key"
        )
        return dict(hand.own.execute(locks, [QUEUE, self.arena.keys]).fetchall())

    def _send(self, hand: Hand, keys: list[str | None]) -> list[Sent]:
        sent: list[Sent] = []
        for key in keys:
            deferred = hand.random.random() < 0.1
            start = {"start_after": hand.random.random() * 0.2} if deferred else {}
            job = NewJob(priority=hand.random.choice((0, 0, 1, 5)), singleton_key=key, **start)
            if id := hand.run(lambda own, job=job: hand.store.sending.send(QUEUE, job, own=own), own=False):
                sent.append((id, key, deferred))
                hand.pause()
        return sent

    def _insert(self, hand: Hand, keys: list[str | None]) -> list[Sent]:
        jobs = [{"data": key, "singleton_key": key} for key in keys]
        loaded = hand.run(lambda own: hand.store.loading.insert(QUEUE, jobs, keep_ids=True), own=False)
        return self._sent(hand, loaded.ids)

    def _insert_rows(self, hand: Hand, keys: list[str | None]) -> list[Sent]:
        ids = []
        for key in keys:
            if not self._is_refused(hand):
                id = uuid4()
                row = "INSERT INTO trioboss.job (id, name, singleton_key, priority) VALUES (%s, %s, %s, %s)"
                hand.caller.execute(row, [id, QUEUE, key, hand.random.choice((0, 3))])
                ids.append(id)
            hand.pause()
        return self._sent(hand, ids)

    def _is_refused(self, hand: Hand) -> bool:
        """Policies that count queued jobs refuse a second one with an error: plain SQL has to avoid that itself."""
        ((policy,),) = hand.caller.execute(
            "SELECT policy FROM trioboss.queue WHERE name = %s", [QUEUE]
        ).fetchall()
        return policy in ("short", "stately", "exclusive")

    def _sent(self, hand: Hand, ids: list[UUID]) -> list[Sent]:
        rows = hand.caller.execute(
            "SELECT id, key FROM trioboss.live_job WHERE id = ANY (%s) ORDER BY seq", [ids]
        )
        return [(id, key, False) for id, key in rows.fetchall()]

    def _record(self, hand: Hand, sent: list[Sent], began: float) -> None:
        for id, key, deferred in sent:
            ((n,),) = hand.caller.execute(_COUNT, [key or ""]).fetchall()
            hand.caller.execute("INSERT INTO sent VALUES (%s, %s, %s, %s, %s)", [id, key, n, began, deferred])

    def _record_commit(self, hand: Hand, ids: list[UUID]) -> None:
        at = time.monotonic()
        recorded = hand.own.execute(
            "INSERT INTO committed SELECT id, %s FROM sent WHERE id = ANY (%s)", [at, ids]
        )
        self.arena.count("sent", recorded.rowcount)


@attrs.frozen
class Changer:
    """Cancels, deletes, resumes and retries in transactions, 30 % of which are rolled back."""

    arena: Arena
    rounds: int | None = None
    until: float | None = None

    def __call__(self, hand: Hand) -> None:
        on, round_number = goes_on(self.rounds, self.until), 0
        while on(round_number):
            round_number += 1
            name = hand.random.choice(("cancel", "delete", "resume", "retry", "retry", "retry"))
            ids = sorted(self._find(hand, name))
            try:
                with hand.transaction(rolls_back=0.3, may_deadlock=True):
                    change = getattr(hand.store.changing, name)
                    settled = hand.run(lambda own, c=change, i=ids: c(QUEUE, i, own=own), own=False)
                    for id in settled.ids:
                        hand.caller.execute("INSERT INTO changed VALUES (%s, %s)", [id, name])
                self.arena.count(name)
            except JobNotFound:
                hand.pause()

    def _find(self, hand: Hand, name: str) -> list[UUID]:
        states = {"resume": ["cancelled"], "retry": ["failed"]}.get(
            name, ["created", "retry", "active", "failed"]
        )
        rows = hand.own.execute(
            "SELECT id FROM trioboss.all_jobs WHERE name = %s AND state = ANY (%s) ORDER BY random() LIMIT 2",
            [QUEUE, states],
        ).fetchall()
        return [id for (id,) in rows][: hand.random.choice((1, 1, 2))] or [UUID(int=1)]


@attrs.frozen
class PlainWriter:
    """Writes jobs of every readiness by plain SQL, in transactions, 30 % of which are rolled back."""

    arena: Arena
    until: float

    WAYS = (
        ("data", "UPDATE trioboss.live_job SET data = '1' WHERE id = %s", None),
        (
            "note",
            """UPDATE trioboss.live_job SET notes = coalesce(notes, '{}') || '{"progress": 1}' WHERE id = %s""",
            None,
        ),
        ("delete", "DELETE FROM trioboss.live_job WHERE id = %s", None),
        (
            "defer",
            "UPDATE trioboss.live_job SET readiness = 'deferred' WHERE id = %s",
            ("ready", "waiting", "active"),
        ),
        (
            "wait",
            "UPDATE trioboss.live_job SET readiness = 'waiting' WHERE id = %s",
            ("deferred", "ready", "active"),
        ),
        ("ready", "UPDATE trioboss.live_job SET readiness = 'ready' WHERE id = %s", ("deferred", "waiting")),
    )
    READINESS = ("deferred", "waiting", "ready", "active", "ended")

    def __call__(self, hand: Hand) -> None:
        while time.monotonic() < self.until:
            how, statement, only = hand.random.choice(self.WAYS)
            readiness = hand.random.choice(only or self.READINESS)
            found = hand.own.execute(
                "SELECT id FROM trioboss.live_job WHERE queue = %s AND readiness = %s ORDER BY random() LIMIT 1",
                [QUEUE, readiness],
            ).fetchone()
            if found is not None:
                self._write(hand, found[0], how, statement)
                self.arena.count(f"plain {how} of {readiness}")
            hand.pause(0.01)

    def _write(self, hand: Hand, id: UUID, how: str, statement: str) -> None:
        try:
            with hand.transaction(rolls_back=0.3, may_deadlock=True):
                if hand.caller.execute(statement, [id]).rowcount and how not in ("data", "note"):
                    hand.caller.execute("INSERT INTO changed VALUES (%s, %s)", [id, how])
        except psycopg.errors.UniqueViolation:
            assert how in ("wait", "defer", "ready")  # it would break a policy


def _join(first: Settlements, second: Settlements) -> Settlements:
    return Settlements(
        [*first.completed, *second.completed],
        [*first.failed, *second.failed],
        [*first.released, *second.released],
    )


@attrs.define(eq=False)
class Dispatcher:
    """Settles and claims as a dispatcher does; and now and then as a program does that fetches manually."""

    arena: Arena
    worker: UUID = attrs.field(factory=uuid4)

    def __call__(self, hand: Hand) -> None:
        operation = hand.store.settle_and_claim.settle_and_claim
        settlements = Settlements()
        settles_alone = False
        while not self.arena.is_over.is_set():
            if hand.random.random() < 0.1:
                self._fetch(hand)
                continue
            request: ClaimRequest | None = ClaimRequest(hand.random.choice((1, 2, 5)), self.worker)
            if settles_alone:
                request = None
            try:
                answer = hand.run(lambda own, s=settlements, r=request: operation(QUEUE, s, r))
            except psycopg.errors.DeadlockDetected:
                # A caller changes several of these jobs in another order. A dispatcher tries again, with all of them.
                self.arena.count("deadlock")
                continue
            except psycopg.errors.LockNotAvailable:
                # A caller's transaction has changed one of these jobs. A dispatcher settles again without a claim.
                self.arena.count("lock timeout")
                settles_alone = True
                continue
            settles_alone = False
            jobs = list(answer.claim.jobs) if answer.claim is not None else []
            self.arena.count("claimed", len(jobs))
            # An outcome that waits for another transaction is tried again with the next ones.
            settled = {lease.id for lease in settlements.leases} - answer.postponed
            settlements = _join(settlements.without(settled), self._work(hand, jobs))
            if not jobs:
                hand.pause(0.01)

    def _work(self, hand: Hand, jobs: list[Job]) -> Settlements:
        completed: list[tuple[Lease, str]] = []
        failed: list[tuple[Lease, Failure]] = []
        released: list[Lease] = []
        for job in jobs:
            hand.pause()
            way = hand.random.choice(("complete",) * 6 + ("fail", "fail", "release", "crash", "slow", "beat"))
            if way == "complete":
                completed.append((job.lease, "null"))
            elif way == "fail":
                delay = hand.random.choice((None, 0.0, 0.05))
                failed.append((job.lease, Failure('"an error"', delay=delay)))
            elif way == "release":
                released.append(job.lease)
            elif way == "slow":
                self._complete_in_transaction(hand, job)
            elif way == "beat":
                self._touch(hand, job)
                completed.append((job.lease, "null"))
            self.arena.count(way)
        return Settlements(completed, failed, released)

    def _touch(self, hand: Hand, job: Job) -> None:
        try:
            hand.run(lambda own: hand.store.leases.touch(QUEUE, job, own=own))
        except LeaseLost:
            hand.pause()

    def _complete_in_transaction(self, hand: Hand, job: Job) -> None:
        try:
            with hand.transaction(rolls_back=0.5):
                hand.run(lambda own: hand.store.manual.complete(QUEUE, job, None, own=own), own=False)
        except LeaseLost:
            hand.pause()

    def _fetch(self, hand: Hand) -> None:
        """Claim in a transaction of the caller, complete some in it, and commit or roll back."""
        request = ClaimRequest(hand.random.choice((1, 2)), by_priority=hand.random.random() < 0.8)
        with hand.transaction(rolls_back=0.5):
            claim = hand.run(lambda own: hand.store.claiming.claim(QUEUE, request, own=own), own=False)
            for job in claim.jobs:
                if hand.random.random() < 0.5:
                    hand.run(
                        lambda own, job=job: hand.store.manual.complete(QUEUE, job, None, own=own),
                        own=False,
                    )
            self.arena.count("fetched", len(claim.jobs))
