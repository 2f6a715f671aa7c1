"""The job that a handler gets: its data, and what the handler can do with its lease."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar, cast

import attrs
import trio

from trioboss.actors.attempts import Running
from trioboss.actors.ports import LeasePort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable, LeaseLost
from trioboss.events import ErrorEvent, LeaseExtended
from trioboss.machines.attempt import CancelReason, ManualSettlement
from trioboss.model.check import check_duration
from trioboss.model.described_error import Redact
from trioboss.model.handed_job import D_co, HandedJob
from trioboss.model.job import Duration, Job
from trioboss.model.payload import JsonInput, encode
from trioboss.model.states import JobState

__all__ = ["CallSettings", "DeadLetterJob", "LeasedJob", "RetryJob"]

T = TypeVar("T")

_PROGRESS_TIMEOUT = (
    2.0  # seconds that the database has to record progress, before the handler goes on without
)


class RetryJob(Exception):
    """Made by `job.retry` and raised by a handler: fail this attempt and try again."""

    def __init__(self, delay: float | None, reason: str | None) -> None:
        super().__init__(reason or "the handler asked for a retry")
        self.delay = delay
        self.reason = reason


class DeadLetterJob(Exception):
    """Made by `job.dead_letter` and raised by a handler: fail the job without further retries."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason or "the handler gave the job up")
        self.reason = reason


@attrs.frozen(kw_only=True)
class CallSettings:
    """The values that all jobs of a worker share. Made once for each worker, so that a job costs nothing more."""

    port: LeasePort
    reporter: Reporter
    token: trio.lowlevel.TrioToken
    max_bytes: int
    """The largest output, as JSON text."""
    surroundings: object = None
    """Further values of the API's job class: the boss, and the context of the lifespan."""
    decode: Callable[[Job], Any] | None = None
    """The type of the data, if one is declared. Raises DataMismatch."""
    is_trio: bool = True
    """Whether the handler is a trio function, so that errors of asyncio mean that it should not be."""
    redact: Redact | None = None
    """Changes errors before they are stored."""


@attrs.define(eq=False)
class LeasedJob(HandedJob, Generic[D_co]):
    """The argument of a handler: the job, its attributes (`job.data`, `job.attempt`, …), and methods that act on it."""

    job: Job
    _running: Running
    _settings: CallSettings
    _decoded: Any = attrs.field(init=False)
    """Not set until the data is read for the first time; never, where no type is declared."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.queue!r} {self.id} attempt {self.job.attempt}>"

    @property
    def data(self) -> D_co:
        """The data that was sent, in the type that the worker declares with ``data=``, or as JSON."""
        if self._settings.decode is None:
            return cast("D_co", self.job.data)
        try:
            return cast("D_co", self._decoded)
        except AttributeError:
            self._decoded = self._settings.decode(self.job)
            return cast("D_co", self._decoded)

    @property
    def cancelled(self) -> CancelReason | None:
        """Why trioboss has cancelled the handler, or None. It is also None where something else has cancelled it: a
        scope of the program around the boss, for instance the lifespan of a web server.
        """
        return self._running.reason

    async def extend(self, seconds: Duration) -> None:
        """Let the lease expire later. Counted against max_lease_extensions. Also a heartbeat."""
        expire_in = await self._renew(
            self._settings.port.extend(self.job.queue, self._running.lease, seconds)
        )
        self._running.lease_machine.extended(expire_in)
        job = self.job
        self._settings.reporter.report(LeaseExtended(job.queue, job.id, job.attempt, expire_in))

    async def touch(self) -> None:
        """Send a heartbeat now. It does not count while an open transaction of somebody else has changed the job: that
        may settle it at any moment.
        """
        settlement = self._running.manual
        sent_at = trio.current_time()
        renewed = await self._notice_loss(self._touch())
        # As in actors/attempts.py: the row is locked by the handler's own settlement, or by another transaction.
        if renewed or settlement is not None:
            self._running.lease_machine.beat_confirmed(sent_at)

    async def progress(self, value: JsonInput) -> None:
        """Record how far the job has come; readable as `Job.progress`, and by `boss.follow`. Also a heartbeat.

        Best effort: while the database does not answer, the value is dropped and reported as an ErrorEvent, and the
        handler goes on after at most two seconds. A lost lease raises LeaseLost, as everywhere.
        """
        problem = f"no answer within {_PROGRESS_TIMEOUT:g} s"
        with trio.move_on_after(_PROGRESS_TIMEOUT):
            try:
                report = self._settings.port.report_progress(self.job.queue, self._running.lease, value)
                await self._renew(report)
                return
            except DatabaseUnavailable as error:
                problem = str(error)
        self._settings.reporter.report(ErrorEvent(f"progress of job {self.id}", problem))

    async def complete(self, output: JsonInput = None) -> None:
        """Settle the job now; what the handler returns afterwards does not count."""
        text = "null" if output is None else encode(output, "output", self._settings.max_bytes)
        await self._notice_loss(self._complete(text))
        self.settled_manually(JobState.COMPLETED, "", committed=True)

    def settled_manually(self, state: JobState, error: str, *, committed: bool) -> None:
        """A call of the handler has settled the attempt. Called by the store, from whichever thread it runs in."""
        settle = partial(self._running.settled_manually, ManualSettlement(state, error), committed=committed)
        token = self._settings.token
        if trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is token:
            settle()
            return
        # The machine belongs to the worker's trio thread. trio keeps the order of such calls: this one arrives before
        # the end of the handler. A thread that was left behind may outlive trio: then nothing is settled any more.
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(settle)

    def retry(self, delay: Duration | None = None, reason: str | None = None) -> RetryJob:
        """To be raised: fail this attempt, and try again after ``delay`` instead of the job's own retry delay."""
        seconds = None if delay is None else check_duration("delay", delay)
        return RetryJob(seconds, reason)

    def dead_letter(self, reason: str | None = None) -> DeadLetterJob:
        """To be raised: fail the job for good, without the retries it has left."""
        return DeadLetterJob(reason)

    async def _touch(self) -> bool:
        """Whether the lease was renewed; not if its row is locked."""
        queue, lease = self.job.queue, self._running.lease
        renewed = (await self._settings.port.renew({queue: [lease]})).get(lease.id)
        if renewed is None:
            raise LeaseLost(queue, [lease.id])
        return renewed

    async def _complete(self, output: str) -> None:
        queue, lease = self.job.queue, self._running.lease
        if not await self._settings.port.complete(queue, lease, output):
            raise LeaseLost(queue, [lease.id])

    async def _renew(self, call: Awaitable[T]) -> T:
        sent_at = trio.current_time()
        answer = await self._notice_loss(call)
        self._running.lease_machine.beat_confirmed(sent_at)
        return answer

    async def _notice_loss(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except LeaseLost:
            self._running.cancel(CancelReason.LEASE_LOST)
            raise
