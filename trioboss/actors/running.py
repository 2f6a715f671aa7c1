"""A job that this process has leased, and what a handler can do with it."""

import enum
from collections.abc import Awaitable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

import attrs
import trio

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import LeasePort
from trioboss.errors import LeaseLost
from trioboss.machines.lease import LeaseMachine
from trioboss.model.check import check_duration
from trioboss.model.job import Duration, HandedJob, Job, Lease
from trioboss.model.payload import Json
from trioboss.model.states import JobState

__all__ = [
    "ByHand",
    "CancelReason",
    "ClaimedBatch",
    "DeadLetterJob",
    "RetryJob",
    "Running",
    "RunningJob",
    "by_queue",
    "superseded",
]

T = TypeVar("T")


class CancelReason(enum.StrEnum):
    """Why a running job was told to stop."""

    EXPIRED = "expired"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease_lost"
    STOPPING = "stopping"


class RetryJob(Exception):
    """Made by `job.retry` and raised by a handler: try again, when and why."""

    def __init__(self, delay: float | None, reason: str | None) -> None:
        super().__init__(reason or "the handler asked for a retry")
        self.delay = delay
        self.reason = reason


class DeadLetterJob(Exception):
    """Made by `job.dead_letter` and raised by a handler: no more retries."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason or "the handler gave the job up")
        self.reason = reason


class OutcomeSink(Protocol):
    """Where outcomes are put."""

    def put(self, running: "Running", outcome: Any, now: float) -> None:
        """Take an outcome; None if there is nothing to settle."""


@attrs.frozen
class ByHand:
    """What a handler has made of its job with a verb, before its end."""

    state: JobState
    error: str


@attrs.define(eq=False)
class Running:
    """One lease of ours, from the claim to its settlement. Has one slot and, if it lasts, one heartbeat."""

    job: Job
    lease: Lease
    completer: OutcomeSink
    """Where its outcome goes."""
    began: float
    """When the claim was sent."""
    scope: trio.CancelScope | None = attrs.field(default=None, init=False)
    """Its slot's, while its handler runs."""
    batch_members: "Sequence[Running]" = attrs.field(default=(), init=False)
    """All jobs of the handler call, if it has several."""
    started: float = attrs.field(default=0.0, init=False)
    reason: CancelReason | None = attrs.field(default=None, init=False)
    settled: bool = attrs.field(default=False, init=False)
    """Its outcome is in the completer, or in the database, or nobody's business any more."""
    by_hand: ByHand | None = attrs.field(default=None, init=False)
    """Its handler has settled it with a verb; only if `settled`, too, for certain: the handler's own transaction may
    come to nothing, and then what becomes of the handler counts after all."""
    outcome: Any = attrs.field(default=None, init=False)
    """What is to be settled."""
    unsure: bool = attrs.field(default=False, init=False)
    """Settled once already, but the answer got lost."""
    ended: bool = attrs.field(default=False, init=False)
    """Its handler is out of it."""
    ended_at: float = attrs.field(default=0.0, init=False)
    bell: Doorbell | None = attrs.field(default=None, init=False)
    """Its heartbeat's, once it has one: rung when it is cancelled and when it ends."""
    lingering: trio.Event | None = attrs.field(default=None, init=False)
    """Set when what the handler left running, a thread, has ended, too."""
    _machine: LeaseMachine | None = attrs.field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<Running {self.job.queue!r} {self.job.id} attempt {self.job.attempt}>"

    @property
    def machine(self) -> LeaseMachine:
        """The state of its lease. Jobs that are over at once never need one."""
        if self._machine is None:
            job = self.job
            self._machine = LeaseMachine(self.began, job.expire_in, job.heartbeat, job.auto_heartbeat)
        return self._machine

    @property
    def has_begun(self) -> bool:
        """Whether its handler was called; before that it waits in the buffer."""
        return self.ended or self.scope is not None

    def begin(self, scope: trio.CancelScope, batch: "Sequence[Running]", now: float) -> None:
        """Its handler starts, in the scope of a slot; a call for several is cancelled only when all of them are."""
        self.scope = scope
        self.started = now
        if len(batch) > 1:
            self.batch_members = tuple(batch)

    def cancel(self, reason: CancelReason) -> None:
        """Tell the handler to stop; the first reason counts. Its slot's scope is not its own once it has ended."""
        if self.reason is not None or self.ended:
            return
        gone = reason in (CancelReason.CANCELLED, CancelReason.LEASE_LOST)
        if gone and self.by_hand is not None:
            return  # by the handler itself, which has the rest of its time to clean up
        self.reason = reason
        self.machine.cancelled(trio.current_time())
        if gone:
            self.settled = True  # somebody else has settled it, or will
        if self.scope is not None and all(member.reason is not None for member in self.batch_members):
            self.scope.cancel()
        if self.bell is not None:
            self.bell.ring()

    def settle_by_hand(self, state: JobState, error: str, *, certain: bool) -> None:
        """Its handler has settled it with a verb. May be called from any thread."""
        self.by_hand = ByHand(state, error)
        if certain:
            self.settled = True

    def settle(self, outcome: Any, now: float) -> None:
        """Its outcome is known, and counts."""
        self.settled = True
        self.outcome = outcome
        self.ended_at = now

    def finish(self) -> None:
        """The handler is out of it."""
        self.ended = True
        self.scope = None
        if self.bell is not None:
            self.bell.ring()


@attrs.frozen(eq=False)
class ClaimedBatch:
    """Jobs that one claim has leased, not looked at yet; how many there are is known."""

    jobs: Sequence[Job]
    completer: OutcomeSink
    began: float
    """When the claim was sent."""

    def __len__(self) -> int:
        return len(self.jobs)

    def open(self) -> list[Running]:
        """Read the jobs."""
        return [self._begin(job) for job in self.jobs]

    def _begin(self, job: Job) -> Running:
        assert job.started_on is not None
        return Running(job, Lease(job.id, job.attempt, job.started_on), self.completer, self.began)


def superseded(jobs: Collection[Running]) -> set[Running]:
    """Those of whose job a later attempt is among them: they are lost, whatever becomes of the job.

    The database is asked by job, so it must not be asked for two attempts of one at the same time.
    """
    latest: dict[UUID, Running] = {}
    for running in jobs:
        other = latest.setdefault(running.job.id, running)
        # The number alone may have been issued twice, if a crash of the server forgot a claim.
        if other is not running and _age(running) > _age(other):
            latest[running.job.id] = running
    return set() if len(latest) == len(jobs) else set(jobs) - set(latest.values())


def _age(running: Running) -> tuple[int, datetime]:
    return running.lease.attempt, running.lease.started_on


def by_queue(jobs: Iterable[Running]) -> dict[str, list[Lease]]:
    """The leases of these, by queue."""
    leases: dict[str, list[Lease]] = {}
    for running in jobs:
        leases.setdefault(running.job.queue, []).append(running.lease)
    return leases


@attrs.define(eq=False)
class RunningJob(HandedJob):
    """What a handler gets: the job, by its attributes (`job.data`, `job.attempt`, …), and what to do with it."""

    job: Job
    _running: Running
    _port: LeasePort

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue!r} {self.id} attempt {self.job.attempt}>"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.job, name)

    @property
    def id(self) -> UUID:
        """The job's id."""
        return self.job.id

    @property
    def queue(self) -> str:
        """The queue it is in."""
        return self.job.queue

    @property
    def data(self) -> Any:
        """What was sent."""
        return self.job.data

    @property
    def cancelled(self) -> CancelReason | None:
        """Why the job was told to stop, or None."""
        return self._running.reason

    async def extend(self, seconds: Duration) -> None:
        """Let the lease expire later. Counted against max_lease_extensions. A heartbeat, too."""
        expire_in = await self._beat(self._port.extend(self.job.queue, self._running.lease, seconds))
        self._running.machine.extended(expire_in)

    async def touch(self) -> None:
        """Send a heartbeat now."""
        await self._beat(self._port.touch_one(self.job.queue, self._running.lease))

    async def progress(self, value: Json) -> None:
        """Note how far the job has come; readable as `Job.progress`. A heartbeat, too."""
        await self._beat(self._port.report_progress(self.job.queue, self._running.lease, value))

    async def complete(self, output: Json = None) -> None:
        """Settle the job now; what the handler returns afterwards does not count."""
        await self._held(self._port.complete(self.job.queue, self._running.lease, output))
        self.settled_manually(JobState.COMPLETED, "", certain=True)

    def settled_manually(self, state: JobState, error: str, *, certain: bool) -> None:
        """A verb has settled the attempt, on behalf of the handler."""
        self._running.settle_by_hand(state, error, certain=certain)

    def retry(self, delay: Duration | None = None, reason: str | None = None) -> RetryJob:
        """To be raised: fail this attempt, and try again after ``delay`` instead of the job's own."""
        seconds = None if delay is None else check_duration("delay", delay)
        return RetryJob(seconds, reason)

    def dead_letter(self, reason: str | None = None) -> DeadLetterJob:
        """To be raised: fail the job for good, without the retries it has left."""
        return DeadLetterJob(reason)

    async def _beat(self, call: Awaitable[T]) -> T:
        sent_at = trio.current_time()
        answer = await self._held(call)
        self._running.machine.beat_confirmed(sent_at)
        return answer

    async def _held(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except LeaseLost:
            self._running.cancel(CancelReason.LEASE_LOST)
            raise
