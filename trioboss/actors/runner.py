"""One call of a handler: what the handler gets, and the outcome that follows from whatever it does."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import attrs
import trio

from trioboss.actors.ports import LeasePort
from trioboss.actors.running import Running
from trioboss.errors import BatchFailed, LeaseLost, PayloadError, UsageError
from trioboss.machines.attempt import CancelReason, Completed, Failed, ManualSettlement, Outcome
from trioboss.model.check import check_duration
from trioboss.model.job import Duration, HandedJob, Job
from trioboss.model.payload import Json, Unreadable, describe_error, encode, error_line, is_large
from trioboss.model.settle_and_claim import Failure
from trioboss.model.states import JobState

__all__ = [
    "CallSettings",
    "DeadLetterJob",
    "Handler",
    "RetryJob",
    "RunningJob",
    "fail_leaked",
    "is_cancelled",
    "run_batch",
    "run_job",
]

T = TypeVar("T")

Handler: TypeAlias = Callable[[Any], Awaitable[Any]]

_NO_OUTPUT = Completed("null")
_NOT_BY_ID = "output: a batch handler returns nothing, or a dict of outputs by the ids of its jobs"


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


@attrs.frozen
class CallSettings:
    """What all jobs of a worker share."""

    port: LeasePort
    token: trio.lowlevel.TrioToken
    max_bytes: int
    """The largest output, as JSON text."""


@attrs.define(eq=False)
class RunningJob(HandedJob):
    """What a handler gets: the job, by its attributes (`job.data`, `job.attempt`, …), and what to do with it."""

    job: Job
    _running: Running
    _settings: CallSettings

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
        """Why the job was cancelled, or None."""
        return self._running.reason

    async def extend(self, seconds: Duration) -> None:
        """Let the lease expire later. Counted against max_lease_extensions. Also a heartbeat."""
        expire_in = await self._renew(
            self._settings.port.extend(self.job.queue, self._running.lease, seconds)
        )
        self._running.lease_machine.extended(expire_in)

    async def touch(self) -> None:
        """Send a heartbeat now."""
        await self._renew(self._touch())

    async def progress(self, value: Json) -> None:
        """Record how far the job has come; readable as `Job.progress`. Also a heartbeat."""
        await self._renew(self._settings.port.report_progress(self.job.queue, self._running.lease, value))

    async def complete(self, output: Json = None) -> None:
        """Settle the job now; what the handler returns afterwards does not count."""
        text = "null" if output is None else encode(output, "output", self._settings.max_bytes)
        await self._notice_loss(self._complete(text))
        self.settled_manually(JobState.COMPLETED, "", certain=True)

    def settled_manually(self, state: JobState, error: str, *, certain: bool) -> None:
        """A call of the handler has settled the attempt. Called by the store, from whichever thread it runs in."""
        settle = partial(self._running.settled_manually, ManualSettlement(state, error), committed=certain)
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

    async def _touch(self) -> None:
        queue, lease = self.job.queue, self._running.lease
        if lease.id not in await self._settings.port.renew({queue: [lease]}):
            raise LeaseLost(queue, [lease.id])

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


async def run_job(job: RunningJob, handler: Handler, max_bytes: int) -> Outcome:
    """Run the handler. Raises only cancellation, which the slot turns into an outcome."""
    if isinstance(job.job.data, Unreadable):
        return _fail_unreadable(job)
    try:
        value = await handler(job)
    except BaseException as error:
        if is_cancelled(error):
            raise
        return _fail(error)
    return _NO_OUTPUT if value is None else await _complete(value, max_bytes)


async def run_batch(jobs: list[RunningJob], handler: Handler, max_bytes: int) -> dict[UUID, Outcome]:
    """Run the handler on several jobs at once. It may return outputs by id, or raise errors by id."""
    if unreadable := {job.id: _fail_unreadable(job) for job in jobs if isinstance(job.data, Unreadable)}:
        readable = [job for job in jobs if job.id not in unreadable]
        return unreadable | (await run_batch(readable, handler, max_bytes) if readable else {})
    ids = [job.id for job in jobs]
    try:
        value = await handler(jobs)
    except BaseException as error:
        if is_cancelled(error):
            raise
        cause = _unwrapped(error)
        errors = _by_id(cause.__dict__.get("errors"), ids) if isinstance(cause, BatchFailed) else None
        if errors is None:
            return dict.fromkeys(ids, _fail(error))
        return {id: _fail(errors[id]) if id in errors else _NO_OUTPUT for id in ids}
    if value is None:
        return dict.fromkeys(ids, _NO_OUTPUT)
    outputs = _by_id(value, ids)
    if outputs is None:
        return dict.fromkeys(ids, _failed(UsageError(_NOT_BY_ID)))
    return {id: await _complete(outputs.get(id), max_bytes) for id in ids}


def _fail_unreadable(job: RunningJob) -> Outcome:
    """No handler can use such data, now or later: no retries."""
    return _failed(PayloadError("data", job.data.problem), dead=True)


def _by_id(value: object, ids: Sequence[UUID]) -> dict[UUID, Any] | None:
    """The values for each job; None if the keys are not ids of these jobs. An id may be given as text."""
    names: dict[object, UUID] = {id: id for id in ids} | {str(id): id for id in ids}
    try:
        # The methods of dict itself: what a handler returns may be of a class that computes its items.
        if not isinstance(value, dict) or not dict.keys(value) <= names.keys():
            return None
        return {names[key]: item for key, item in dict.items(value)}
    except Exception:
        return None


def _unwrapped(error: object) -> object:
    """The exception without the groups that nurseries put around it."""
    while isinstance(error, BaseExceptionGroup) and len(_members(error)) == 1:
        (error,) = _members(error)
    return error


def _members(group: BaseExceptionGroup[BaseException]) -> tuple[BaseException, ...]:
    """The exceptions in a group, whatever a subclass says they are."""
    members: tuple[BaseException, ...] = BaseExceptionGroup.exceptions.__get__(group)
    return members


def is_cancelled(error: BaseException) -> bool:
    """True for Cancelled, and for groups of nothing else."""
    # Not by recursion: a handler can nest groups deeper than the stack is.
    todo = [error]
    while todo:
        one = todo.pop()
        if isinstance(one, BaseExceptionGroup):
            todo += _members(one)
        elif not isinstance(one, trio.Cancelled):
            return False
    return True


def fail_leaked(error: BaseException) -> Outcome:
    """The outcome of a handler that raised a Cancelled which belongs to no scope of ours."""
    return _failed(error)


async def _complete(value: object, max_bytes: int) -> Outcome:
    if value is None:
        return _NO_OUTPUT
    try:
        if is_large(value):
            # Shielded: the handler has returned, and its job is completed whatever happens to its scope now.
            with trio.CancelScope(shield=True):
                return Completed(await trio.to_thread.run_sync(encode, value, "output", max_bytes))
        return Completed(encode(value, "output", max_bytes))
    except BaseException as error:
        return _failed(error)


def _fail(error: object) -> Outcome:
    """The failure for anything that can be raised, or named as an error in BatchFailed."""
    cause = _unwrapped(error)
    if isinstance(cause, RetryJob):
        return _failed(_message_of(cause), delay=_delay_of(cause))
    if isinstance(cause, DeadLetterJob):
        return _failed(_message_of(cause), dead=True)
    return _failed(error)


def _delay_of(error: RetryJob) -> float | None:
    try:
        return None if error.delay is None else check_duration("delay", error.delay)
    except UsageError:
        return None


def _message_of(error: BaseException) -> object:
    return error.args[0] if error.args else error


def _failed(error: object, *, delay: float | None = None, dead: bool = False) -> Failed:
    line = error_line(error)
    try:
        described = describe_error(error)
    except PayloadError:
        described = describe_error(line)
    return Failed(Failure(described, delay=delay, dead=dead), line)
