"""Runs one job, or one batch: whatever a handler does becomes an outcome, and harms nobody else."""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

import attrs
import trio

from trioboss.actors.running import CancelReason, DeadLetterJob, RetryJob, Running, RunningJob
from trioboss.errors import BatchFailed, PayloadError
from trioboss.model.exchange import Failure
from trioboss.model.payload import describe_error, encode

__all__ = ["Completed", "Failed", "Handler", "Outcome", "Released", "run_batch", "run_job"]

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
_EXPIRED = Failed(Failure(describe_error("the job expired"), outcome="expired"), "the job expired")


async def run_job(running: Running, job: RunningJob, handler: Handler, max_bytes: int) -> Outcome:
    """Run the handler in the job's own scope. Raises only the cancellation of whoever called."""
    try:
        with running.scope:
            value = await handler(job)
            return _NOTHING if value is None else _encoded(value, max_bytes)
    except BaseException as error:
        if _is_stopped(error):
            running.cancel(CancelReason.STOPPING)
            raise
        return judge_cancelled(running) if running.reason else _judge(error)
    return judge_cancelled(running)


async def run_batch(
    batch: Sequence[Running], jobs: list[RunningJob], handler: Handler, max_bytes: int
) -> dict[UUID, Outcome]:
    """Run the handler on several jobs at once. It may return outputs by id, or raise errors by id."""
    scope = batch[0].scope
    try:
        with scope:
            value = await handler(jobs)
            outputs = value if isinstance(value, dict) and value.keys() <= {r.job.id for r in batch} else {}
            return {r.job.id: _encoded(outputs.get(r.job.id), max_bytes) for r in batch}
    except BatchFailed as failed:
        return {
            r.job.id: _failed(failed.errors[r.job.id]) if r.job.id in failed.errors else _NOTHING
            for r in batch
        }
    except BaseException as error:
        if _is_stopped(error):
            for running in batch:
                running.cancel(CancelReason.STOPPING)
            raise
        return {r.job.id: judge_cancelled(r) if r.reason else _judge(error) for r in batch}
    return {r.job.id: judge_cancelled(r) for r in batch}


def _is_stopped(error: BaseException) -> bool:
    """True if the slot itself is being cancelled. A Cancelled from nowhere is the handler's own mistake."""
    return _is_cancelled(error) and trio.current_effective_deadline() == -math.inf


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cancelled, error.exceptions))
    return isinstance(error, trio.Cancelled)


def judge_cancelled(running: Running) -> Outcome:
    """What a cancelled attempt comes to, by the reason it was cancelled for."""
    if running.reason is CancelReason.EXPIRED:
        return _EXPIRED
    if running.reason is CancelReason.STOPPING:
        return Released()
    return None


def _encoded(value: object, max_bytes: int) -> Outcome:
    try:
        return _NOTHING if value is None else Completed(encode(value, "output", max_bytes))
    except PayloadError as error:
        return _failed(error)


def _judge(error: BaseException) -> Outcome:
    if isinstance(error, RetryJob):
        return Failed(Failure(describe_error(error.args[0]), delay=error.delay), str(error))
    if isinstance(error, DeadLetterJob):
        return Failed(Failure(describe_error(error.args[0]), dead=True), str(error))
    return _failed(error)


def _failed(error: object) -> Failed:
    text = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
    return Failed(Failure(describe_error(error)), text.partition("\n")[0][:500])
