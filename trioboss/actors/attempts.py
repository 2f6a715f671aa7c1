"""The attempts that this process has leased: what the actors need to cancel one and to settle it, and the heartbeats
that renew their leases and cancel a job before its lease ends.

A job gets a heartbeat, which is a task of its own, a tenth of a second after its claim. Most jobs have ended by then
and need none: to start a task costs more than such a job.
"""

import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.lag_monitor import Lags
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, JobStuck, LoopBlocked
from trioboss.machines.attempt import Action, AttemptMachine, CancelReason, Outcome
from trioboss.machines.lease import Due, LeaseMachine
from trioboss.model.job import Job, Lease

__all__ = [
    "ClaimedBatch",
    "Heartbeat",
    "LeaseWatchers",
    "OutcomeSink",
    "Renewer",
    "Running",
    "by_queue",
    "superseded",
]

# Seconds from its claim until a job gets its heartbeat. The first renewal of the shortest heartbeat, of one second, is
# due after a quarter of a second.
_HEARTBEAT_DELAY = 0.1
_TICK = 1.0  # seconds between checks whether the event loop is blocked, as long as a job has a heartbeat
_LAG = 1.0  # seconds by which a timer may be late before the event loop counts as blocked
_TIMEOUT = 5.0  # seconds that the database has to answer a renewal


class OutcomeSink(Protocol):
    """The completer of the queue from which a job was claimed."""

    def put(self, running: "Running", action: Action, now: float) -> None:
        """Take an attempt about which something has to be settled, counted or reported."""

    def report_late(self, running: "Running", outcome: Outcome) -> None:
        """Report what a handler has raised or returned after the end of its attempt was decided."""


@attrs.define(eq=False)
class Running(AttemptMachine):
    """One attempt of this process, from its claim to its settlement: also in the buffer and in the completer.

    The machine decides, and this class carries out: its methods are commands, those of the machine events. It extends
    the machine instead of holding one, because a second object for each job would cost 0.1 µs.
    """

    job: Job
    completer: OutcomeSink
    claim_sent_at: float
    claimed_with: "set[Running]" = attrs.field(factory=set)
    """The attempts of the same claim whose handlers have not ended, itself included: one set, which they share.
    `LeaseWatchers` gives heartbeats to those that are left after the heartbeat delay. An attempt that ends leaves the
    set, or thousands of them would stay in memory until then.
    """
    scope: trio.CancelScope | None = attrs.field(default=None, init=False)
    """The scope of its slot, while its handler runs: afterwards the scope serves other jobs."""
    batch_members: "Sequence[Running]" = attrs.field(default=(), init=False)
    """All attempts of the handler's call, if it has several."""
    started_at: float = attrs.field(default=0.0, init=False)
    ended_at: float = attrs.field(default=0.0, init=False)
    heartbeat: "Heartbeat | None" = attrs.field(default=None, init=False)
    """Only jobs that last have one."""
    _lease_machine: LeaseMachine | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<Running {self.job.queue!r} {self.job.id} attempt {self.job.attempt}>"

    @property
    def lease(self) -> Lease:
        """The right to settle it. Made anew each time: most attempts need it once, in the statement that settles them,
        and an object that lives as long as its job costs the garbage collector more than that.
        """
        job = self.job
        assert job.started_on is not None
        return Lease(job.id, job.attempt, job.started_on)

    @property
    def lease_machine(self) -> LeaseMachine:
        """The state of its lease. Jobs that end at once never need one."""
        if self._lease_machine is None:
            job = self.job
            self._lease_machine = LeaseMachine(
                self.claim_sent_at, job.expire_in, job.heartbeat, job.auto_heartbeat
            )
        return self._lease_machine

    @property
    def waited(self) -> float:
        """Seconds from when the job could have started until its handler was called. The time until the claim is
        measured by the clock of the database, the time after it by the clock of this process: the two are never
        compared.
        """
        job = self.job
        assert job.started_on is not None
        unclaimed = (job.started_on - max(job.start_after, job.created_on)).total_seconds()
        return max(0.0, unclaimed) + max(0.0, self.started_at - self.claim_sent_at)

    @property
    def ran(self) -> float:
        """Seconds that its handler took."""
        return self.ended_at - self.started_at

    def start(self, scope: trio.CancelScope, batch: "Sequence[Running]", now: float) -> None:
        """Its handler is called, in the scope of a slot."""
        self.started()
        self.scope = scope
        self.started_at = now
        if len(batch) > 1:
            self.batch_members = tuple(batch)

    def cancel(self, reason: CancelReason) -> None:
        """Cancel the handler; an attempt in the buffer is settled at once. A call for several jobs is cancelled only
        when all of them are: there is one scope for all.
        """
        action = self.cancelled(reason)
        if action is Action.NOTHING:
            return
        if action is Action.CANCEL_HANDLER:
            self.lease_machine.cancelled(trio.current_time())
            assert self.scope is not None
            if all(member.reason is not None for member in self.batch_members):
                self.scope.cancel()
        else:
            self.completer.put(self, action, trio.current_time())
        if self.heartbeat is not None:
            self.heartbeat.wake()

    def end(self, outcome: Outcome | None, now: float) -> None:
        """Its handler has ended, with no outcome if it was cancelled."""
        action = self.ended(outcome)
        if outcome is not self.outcome and outcome is not None:
            self.completer.report_late(self, outcome)
        self.scope = None
        self.claimed_with.discard(self)
        if self.heartbeat is not None:
            self.heartbeat.stop()
        # Also if there is nothing to do: a dispatcher that stops waits for the last of its attempts to end.
        self.completer.put(self, action, now)

    def give_up(self) -> None:
        """Its handler was cancelled and does not end: settle the attempt without it."""
        self.completer.put(self, self.given_up(), trio.current_time())


@attrs.frozen(eq=False)
class ClaimedBatch:
    """The jobs of one claim. Their number is known before they are decoded."""

    jobs: Sequence[Job]
    completer: OutcomeSink
    claim_sent_at: float

    def __len__(self) -> int:
        return len(self.jobs)

    def unpack(self) -> list[Running]:
        """Decode the jobs."""
        completer, sent_at = self.completer, self.claim_sent_at
        together: set[Running] = set()
        attempts = [Running(job, completer, sent_at, together) for job in self.jobs]
        together.update(attempts)
        return attempts


def superseded(attempts: Collection[Running]) -> set[Running]:
    """The attempts for whose job there is a later attempt among them: their leases are lost.

    The database is asked by job, so it must not be asked for two attempts of one job at the same time.
    """
    # By the numbers of the ids: a UUID computes its hash in Python.
    if len({running.job.id.int for running in attempts}) == len(attempts):
        return set()
    latest: dict[UUID, Running] = {}
    for running in attempts:
        other = latest.setdefault(running.job.id, running)
        if other is not running and _age(running) > _age(other):
            latest[running.job.id] = running
    return set(attempts) - set(latest.values())


def _age(running: Running) -> tuple[int, datetime]:
    # The number alone may have been issued twice: claims commit asynchronously, and a crash of the server can lose one.
    lease = running.lease
    return lease.attempt, lease.started_on


def by_queue(attempts: Iterable[Running]) -> dict[str, list[Lease]]:
    """The leases of these attempts, by queue."""
    leases: dict[str, list[Lease]] = {}
    for running in attempts:
        leases.setdefault(running.job.queue, []).append(running.lease)
    return leases


# -- heartbeats


@attrs.define(eq=False)
class LeaseWatchers:
    """Starts a heartbeat for each job that lasts, also while it waits in the buffer."""

    _lags: Lags = attrs.field(factory=Lags)
    _waiting: deque[tuple[float, set[Running]]] = attrs.field(factory=deque, init=False)
    """The attempts of each claim that have not ended, with the time when they get heartbeats, in order."""
    _count: int = attrs.field(default=0, init=False)
    """Heartbeats that run."""
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def add(self, attempts: Sequence[Running]) -> None:
        """These are leased now, by one claim."""
        if attempts:
            if not self._waiting:
                self._bell.ring()
            self._waiting.append((trio.current_time() + _HEARTBEAT_DELAY, attempts[0].claimed_with))

    async def run(self, nursery: trio.Nursery, renewer: "Renewer", reporter: Reporter) -> None:
        """Start heartbeats, and report when a handler has blocked the event loop."""
        while True:
            due = self._next_due()
            rung = await self._bell.wait_until(due)
            now = trio.current_time()
            # A timer fires late only if no task could run in between: a handler did not reach a checkpoint.
            self._lags.add(lag := now - due)
            if lag > _LAG:
                reporter.report(LoopBlocked(lag))
            if rung:
                continue  # the next due time has changed
            while self._waiting and self._waiting[0][0] <= now:
                for running in self._waiting.popleft()[1]:
                    if not running.is_decided:
                        nursery.start_soon(self._keep, Heartbeat(running, renewer, reporter))

    def _next_due(self) -> float:
        tick = trio.current_time() + _TICK if self._count else math.inf
        return min(tick, self._waiting[0][0]) if self._waiting else tick

    async def _keep(self, heartbeat: "Heartbeat") -> None:
        self._count += 1
        if self._count == 1:
            self._bell.ring()  # the ticks begin
        try:
            await heartbeat.run()
        finally:
            self._count -= 1


@attrs.define(eq=False)
class Heartbeat:
    """The heartbeat of one job, until its handler has ended."""

    _running: Running
    _renewer: "Renewer"
    _reporter: Reporter
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    def __attrs_post_init__(self) -> None:
        self._running.heartbeat = self

    def wake(self) -> None:
        """The attempt was cancelled: see what its lease needs now."""
        self._bell.ring()

    def stop(self) -> None:
        """The handler has ended."""
        self._scope.cancel()

    async def run(self) -> None:
        """Do what the lease needs, whenever it is due."""
        with self._scope:
            while not self._running.is_decided:
                at, due = self._running.lease_machine.next(held=self._running.needs_lease)
                now = trio.current_time()
                if now >= at:
                    self._act(due, now)
                else:
                    # Asked again afterwards: the lease may have been renewed or extended, the job cancelled.
                    await self._bell.wait_until(at)
            # A handler that was given up can still block the event loop: the ticks go on until it ends.
            await trio.sleep_forever()

    def _act(self, due: Due, now: float) -> None:
        running = self._running
        match due:
            case Due.BEAT:
                running.lease_machine.beat_sent(now)
                self._renewer.renew(running)
            case Due.STUCK:
                job = running.job
                self._reporter.report(JobStuck(job.queue, job.id, job.attempt))
                running.give_up()
            case Due.UNCONFIRMED if running.job.auto_heartbeat:
                running.cancel(CancelReason.LEASE_LOST)
            case Due.EXPIRED | Due.UNCONFIRMED:
                # The handler has failed: it took too long, or it has to renew the lease itself and did not. (LEASE_LOST
                # spends no retry, because a recovery releases the lease: such a job could be tried for ever.)
                running.cancel(CancelReason.EXPIRED)


@attrs.define(eq=False)
class Renewer:
    """Writes the renewals of one worker: all that came since the last answer, in one statement."""

    _port: WorkPort
    _reporter: Reporter
    _requested: dict[Running, None] = attrs.field(factory=dict, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def renew(self, running: Running) -> None:
        """Renew a lease soon. An attempt whose lease turns out to be lost is cancelled."""
        self._requested[running] = None
        self._bell.ring()

    async def run(self) -> None:
        """Renew what is requested. A renewal that got no answer is repeated by the next heartbeat."""
        while True:
            await self._bell.wait()
            # Taken before the statement: a renewal that is requested while it is under way belongs to the next one.
            requested, self._requested = list(self._requested), {}
            for running in superseded(requested):
                running.cancel(CancelReason.LEASE_LOST)
                requested.remove(running)
            # As they are now: a settlement that the handler makes during the renewal cannot be judged by its answer.
            settlements = [running.manual for running in requested]
            sent_at = trio.current_time()
            try:
                with trio.fail_after(_TIMEOUT):
                    held = await self._port.renew(by_queue(requested))
            except (DatabaseUnavailable, trio.TooSlowError) as error:
                self._reporter.report(
                    ErrorEvent("heartbeat", str(error) or f"no answer within {_TIMEOUT:g} s")
                )
                continue
            for running, settlement in zip(requested, settlements, strict=True):
                renewed = held.get(running.job.id)
                if renewed is None:
                    running.cancel(CancelReason.LEASE_LOST)
                # ``renewed`` is False if an open transaction has locked the row. If that is the handler's own
                # settlement, nobody else can take the job as long as it is open, and the lease counts as confirmed. If
                # it is another transaction, it may settle the job at any moment, and the lease does not.
                elif renewed or settlement is not None:
                    running.lease_machine.beat_confirmed(sent_at)
                if renewed and settlement is not None:
                    running.rolled_back(settlement)
