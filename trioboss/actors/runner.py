"""Runs one job, or one batch: whatever a handler does becomes an outcome, and harms nobody else."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

import attrs
import trio

from trioboss.actors.running import CancelReason, DeadLetterJob, RetryJob, Running, RunningJob
from trioboss.errors import BatchFailed, PayloadError, UsageError
from trioboss.model.payload import Unreadable, describe_error, encode, error_line
from trioboss.model.settle_and_claim import Failure

__all__ = [
    "Completed",
    "Failed",
    "Handler",
    "Outcome",
    "Released",
    "is_cancelled",
    "judge_cancelled",
    "judge_leaked",
    "run_batch",
    "run_job",
]

Handler: TypeAlias = Callable[[Any], Awaitable[Any]]


@attrs.frozen
class Completed:
    """The handler returned; its value is JSON text."""

    output: str


@attrs.frozen
class Failed:
    """The handler raised, or took too long."""

    failure: Failure
    error: str
    """What went wrong, in one line."""


@attrs.frozen
class Released:
    """The handler was stopped because this process stops."""


Outcome: TypeAlias = Completed | Failed | Released | None
"""What became of an attempt; None if there is nothing to settle."""

_NOTHING = Completed("null")
_NOT_BY_ID = "output: a batch handler returns nothing, or a dict of outputs by the ids of its jobs"
EXPIRED = Failed(Failure(describe_error("the job expired"), outcome="expired"), "the job expired")


async def run_job(job: RunningJob, handler: Handler, max_bytes: int) -> Outcome:
    """Run the handler. Raises only cancellation, which is for the slot to judge."""
    if isinstance(job.job.data, Unreadable):
        return _unreadable(job)
    try:
        value = await handler(job)
    except BaseException as error:
        if is_cancelled(error):
            raise
        return _judge(error)
    return _NOTHING if value is None else _encoded(value, max_bytes)


async def run_batch(jobs: list[RunningJob], handler: Handler, max_bytes: int) -> dict[UUID, Outcome]:
    """Run the handler on several jobs at once. It may return outputs by id, or raise errors by id."""
    if broken := {job.id: _unreadable(job) for job in jobs if isinstance(job.data, Unreadable)}:
        readable = [job for job in jobs if job.id not in broken]
        return broken | (await run_batch(readable, handler, max_bytes) if readable else {})
    ids = [job.id for job in jobs]
    try:
        value = await handler(jobs)
    except BaseException as error:
        if is_cancelled(error):
            raise
        meant = _unwrapped(error)
        errors = _sort_out(meant.errors, ids) if isinstance(meant, BatchFailed) else None
        if errors is None:
            return dict.fromkeys(ids, _judge(error))
        return {id: _judge(errors[id]) if id in errors else _NOTHING for id in ids}
    if value is None:
        return dict.fromkeys(ids, _NOTHING)
    outputs = _sort_out(value, ids)
    if outputs is None:
        return dict.fromkeys(ids, _failed(UsageError(_NOT_BY_ID)))
    return {id: _encoded(outputs.get(id), max_bytes) for id in ids}


def _unreadable(job: RunningJob) -> Outcome:
    """No handler can do anything with such a job, now or later."""
    return _failed(PayloadError("data", job.data.problem), dead=True)


def _sort_out(value: object, ids: Sequence[UUID]) -> dict[UUID, Any] | None:
    """What is said of each job; None if it is not about these jobs. An id may be given as text."""
    names: dict[object, UUID] = {id: id for id in ids} | {str(id): id for id in ids}
    if not isinstance(value, dict) or not value.keys() <= names.keys():
        return None
    return {names[key]: item for key, item in value.items()}


def _unwrapped(error: object) -> object:
    """What was raised, without the groups that nurseries put around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def is_cancelled(error: BaseException) -> bool:
    """True for Cancelled, and for groups of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_cancelled, error.exceptions))
    return isinstance(error, trio.Cancelled)


def judge_leaked(error: BaseException) -> Outcome:
    """A Cancelled that no cancellation explains is the handler's own mistake."""
    return _failed(error)


def judge_cancelled(running: Running) -> Outcome:
    """What a cancelled attempt comes to, by the reason it was cancelled for. Who never began, did not fail."""
    if running.reason is CancelReason.EXPIRED:
        return EXPIRED if running.has_begun else Released()
    if running.reason is CancelReason.STOPPING:
        return Released()
    return None


def _encoded(value: object, max_bytes: int) -> Outcome:
    try:
        return _NOTHING if value is None else Completed(encode(value, "output", max_bytes))
    except PayloadError as error:
        return _failed(error)


def _judge(error: object) -> Outcome:
    """An attempt that failed, with its error; nothing that can be raised or named as an error gets in the way."""
    meant = _unwrapped(error)
    if isinstance(meant, RetryJob):
        return _failed(meant.args[0], delay=meant.delay)
    if isinstance(meant, DeadLetterJob):
        return _failed(meant.args[0], dead=True)
    return _failed(error)


def _failed(error: object, *, delay: float | None = None, dead: bool = False) -> Failed:
    line = error_line(error)
    try:
        described = describe_error(error)
    except PayloadError:
        described = describe_error(line)
    return Failed(Failure(described, delay=delay, dead=dead), line)
