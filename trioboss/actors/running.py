"""A job that this process has leased, and what a handler can do with it."""

import enum
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

import attrs
import trio

from trioboss.actors.ports import LeasePort
from trioboss.errors import LeaseLost
from trioboss.machines.lease import LeaseMachine
from trioboss.model.check import check_duration
from trioboss.model.job import Duration, Job, Lease
from trioboss.model.payload import Json

__all__ = ["CancelReason", "DeadLetterJob", "RetryJob", "Running", "RunningJob"]

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


class Tray(Protocol):
    """Where outcomes are put."""

    def put(self, running: "Running", outcome: Any) -> None:
        """Take an outcome; None if there is nothing to settle."""


@attrs.define(eq=False)
class Running:
    """One lease of ours, from the claim to its settlement. Has one slot and, if it lasts, one heartbeat."""

    job: Job
    lease: Lease
    tray: Tray
    """Where its outcome goes."""
    began: float
    """When the claim was sent."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    mates: "Sequence[Running]" = attrs.field(default=(), init=False)
    """The jobs that share a handler call with it."""
    started: float = attrs.field(default=0.0, init=False)
    reason: CancelReason | None = attrs.field(default=None, init=False)
    settled: bool = attrs.field(default=False, init=False)
    """Its outcome is in the tray, or in the database, or nobody's business any more."""
    ended: bool = attrs.field(default=False, init=False)
    """Its handler is out of it."""
    done: trio.Event | None = attrs.field(default=None, init=False)
    lingering: trio.Event | None = attrs.field(default=None, init=False)
    """Set when what the handler left running, a thread, has ended, too."""
    machine: LeaseMachine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        job = self.job
        self.machine = LeaseMachine(self.began, job.expire_in, job.heartbeat, job.auto_heartbeat)

    def cancel(self, reason: CancelReason) -> None:
        """Tell the handler to stop; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self.machine.cancelled(trio.current_time())
            if reason in (CancelReason.CANCELLED, CancelReason.LEASE_LOST):
                self.settled = True  # somebody else has settled it, or will
            if all(mate.reason is not None for mate in self.mates):
                self.scope.cancel()

    def join(self, batch: "Sequence[Running]") -> None:
        """Share a handler call, which is cancelled only when all its jobs are."""
        self.mates = batch
        self.scope = batch[0].scope

    def finish(self) -> None:
        """The handler is out of it."""
        self.ended = True
        if self.done is not None:
            self.done.set()


@attrs.define(eq=False)
class RunningJob:
    """What a handler gets: the job, by its attributes (`job.data`, `job.attempt`, …), and what to do with it."""

    job: Job
    """The job as it was claimed."""
    _running: Running
    _port: LeasePort

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
        """Let the lease expire later. Counted against max_lease_extensions."""
        expire_in = await self._held(self._port.extend(self.job.queue, self._running.lease, seconds))
        self._running.machine.extended(expire_in)

    async def touch(self) -> None:
        """Send a heartbeat now."""
        sent_at = trio.current_time()
        await self._held(self._port.touch_one(self.job.queue, self._running.lease))
        self._running.machine.beat_confirmed(sent_at)

    async def progress(self, value: Json) -> None:
        """Note how far the job has come; readable as `Job.progress`."""
        await self._held(self._port.report_progress(self.job.queue, self._running.lease, value))

    async def complete(self, output: Json = None) -> None:
        """Settle the job now; what the handler returns afterwards does not count."""
        await self._held(self._port.complete(self.job.queue, self._running.lease, output))
        self._running.settled = True

    def retry(self, delay: Duration | None = None, reason: str | None = None) -> RetryJob:
        """To be raised: fail this attempt, and try again after ``delay`` instead of the job's own."""
        seconds = None if delay is None else check_duration("delay", delay)
        return RetryJob(seconds, reason)

    def dead_letter(self, reason: str | None = None) -> DeadLetterJob:
        """To be raised: fail the job for good, without the retries it has left."""
        return DeadLetterJob(reason)

    async def _held(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except LeaseLost:
            self._running.cancel(CancelReason.LEASE_LOST)
            raise
