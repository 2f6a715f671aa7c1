"""One call of a handler, and the outcome that follows from whatever it does."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeGuard
from uuid import UUID

import trio

from trioboss.actors.leased_job import CallSettings, DeadLetterJob, LeasedJob, RetryJob
from trioboss.errors import BatchFailed, DataMismatch, PayloadError, UsageError
from trioboss.machines.attempt import Completed, Failed, Outcome
from trioboss.model.batch import BatchResult
from trioboss.model.check import check_duration
from trioboss.model.described_error import describe_cause, describe_error, error_line, is_instance
from trioboss.model.payload import Unreadable, encode, is_large
from trioboss.model.settle_and_claim import Failure

__all__ = ["Call", "fail_leaked", "is_cancelled", "run_batch", "run_job"]

Call: TypeAlias = Callable[[Any], Awaitable[Any]]
"""A handler as slots call it: of trio, with its middleware around it."""

_NO_OUTPUT = Completed("null")
_NOT_BY_ID = (
    "output: a batch handler returns nothing, a dict of outputs by the ids of its jobs, or a list with one BatchResult "
    "for each of them"
)
_NOT_NAMED = "the handler of the batch returned no result for this job"
# The texts of asyncio's and trio's own errors when a function that was written for asyncio runs under trio.
_ASYNCIO_ERRORS = (
    "no running event loop",
    "no current event loop",
    "'NoneType' object has no attribute 'create_",
    "unrecognized yield message",
    "trio got unexpected",
)
_ASYNCIO_REMEDY = "the handler is an asyncio function: declare it with asyncio=True"


async def run_job(job: LeasedJob[Any], handler: Call, settings: CallSettings) -> Outcome:
    """Run the handler. Raises only cancellation, which the slot turns into an outcome."""
    if isinstance(job.job.data, Unreadable):
        return _fail_unreadable(job.job.data)
    try:
        value = await handler(job)
    except BaseException as error:
        if is_cancelled(error):
            raise
        return _fail(error, settings)
    return _NO_OUTPUT if value is None else await _complete(value, settings.max_bytes)


async def run_batch(jobs: list[LeasedJob[Any]], handler: Call, settings: CallSettings) -> dict[UUID, Outcome]:
    """Run the handler on several jobs at once. It may return outputs by id or BatchResults, or raise errors by id."""
    if unfit := _find_unfit(jobs, settings):
        fit = [job for job in jobs if job.id not in unfit]
        return unfit | (await run_batch(fit, handler, settings) if fit else {})
    ids = [job.id for job in jobs]
    try:
        value = await handler(jobs)
    except BaseException as error:
        if is_cancelled(error):
            raise
        cause = _unwrapped(error)
        errors = _by_id(cause.__dict__.get("errors"), ids) if is_instance(cause, BatchFailed) else None
        if errors is None:
            return dict.fromkeys(ids, _fail(error, settings))
        return {id: _fail(errors[id], settings) if id in errors else _NO_OUTPUT for id in ids}
    if value is None:
        return dict.fromkeys(ids, _NO_OUTPUT)
    if is_instance(value, list):
        return await _settle_each(value, ids, settings)
    outputs = _by_id(value, ids)
    if outputs is None:
        return dict.fromkeys(ids, _failed(UsageError(_NOT_BY_ID)))
    return {id: await _complete(outputs.get(id), settings.max_bytes) for id in ids}


async def _settle_each(value: list[Any], ids: Sequence[UUID], settings: CallSettings) -> dict[UUID, Outcome]:
    """The outcomes that a list of BatchResults names. A job that it does not name has failed: nobody vouches for it."""
    results = _results_by_id(value, ids)
    if results is None:
        return dict.fromkeys(ids, _failed(UsageError(_NOT_BY_ID)))
    outcomes: dict[UUID, Outcome] = {}
    for id in ids:
        result = results.get(id)
        if result is None:
            outcomes[id] = _failed(_NOT_NAMED)
        elif result.error is not None:
            outcomes[id] = _fail(result.error, settings)
        else:
            outcomes[id] = await _complete(result.output, settings.max_bytes)
    return outcomes


def _results_by_id(value: list[Any], ids: Sequence[UUID]) -> dict[UUID, BatchResult] | None:
    """The results of the jobs; None if an item of the list is no result of one of them, or a second one."""
    # The methods of list itself: what a handler returns may be of a class that computes its items.
    items = list.copy(value)
    try:
        results = _by_id({item.id: item for item in items if type(item) is BatchResult}, ids)
    except TypeError:  # an id without a hash
        return None
    return None if results is None or len(results) < len(items) else results


def _find_unfit(jobs: list[LeasedJob[Any]], settings: CallSettings) -> dict[UUID, Outcome]:
    """The failures of jobs whose data no handler can use: the others of the batch run without them."""
    unfit: dict[UUID, Outcome] = {}
    for job in jobs:
        if isinstance(job.job.data, Unreadable):
            unfit[job.id] = _fail_unreadable(job.job.data)
        elif settings.decode is not None:
            try:
                _ = job.data
            except DataMismatch as error:
                unfit[job.id] = _fail(error, settings)
    return unfit


def _fail_unreadable(data: Unreadable) -> Outcome:
    """No handler can use such data, now or later: no retries."""
    return _failed(PayloadError("data", data.problem), dead=True)


def _by_id(value: object, ids: Sequence[UUID]) -> dict[UUID, Any] | None:
    """The values for each job; None if the keys are not ids of these jobs. An id may be given as text."""
    names: dict[object, UUID] = {id: id for id in ids} | {str(id): id for id in ids}
    try:
        # The methods of dict itself: what a handler returns may be of a class that computes its items.
        if not is_instance(value, dict) or not dict.keys(value) <= names.keys():
            return None
        return {names[key]: item for key, item in dict.items(value)}
    except Exception:
        return None


def _unwrapped(error: object) -> object:
    """The exception without the groups that nurseries put around it."""
    while is_instance(error, BaseExceptionGroup) and len(_members(error)) == 1:
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
        if is_instance(one, BaseExceptionGroup):
            todo += _members(one)
        elif not is_instance(one, trio.Cancelled):
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


def _fail(error: object, settings: CallSettings) -> Outcome:
    """The failure for anything that can be raised, or named as an error in BatchFailed."""
    try:
        return _fail_as_raised(error, settings)
    except BaseException as problem:  # of the methods of the error, or of what it was made with
        return _failed(problem, settings)


def _fail_as_raised(error: object, settings: CallSettings) -> Outcome:
    cause = _unwrapped(error)
    if is_instance(cause, RetryJob):
        return _failed(_describe_request(cause), settings, cause, delay=_delay_of(cause))
    if is_instance(cause, DeadLetterJob):
        return _failed(_describe_request(cause), settings, cause, dead=True)
    if is_instance(cause, DataMismatch):
        return _failed(cause, settings, dead=True)  # the data will not fit at the next attempt, either
    if settings.is_trio and _is_of_asyncio(cause):
        cause.add_note(_ASYNCIO_REMEDY)
    return _failed(error, settings)


def _delay_of(error: RetryJob) -> float | None:
    try:
        return None if error.delay is None else check_duration("delay", error.delay)
    except UsageError:
        return None


def _describe_request(request: RetryJob | DeadLetterJob) -> object:
    """A retry, or the end, that was asked for: its reason, what others added, and the exception behind it."""
    message = request.args[0] if request.args else request
    added = {name: value for name, value in vars(request).items() if name not in ("delay", "reason")}
    added |= describe_cause(request)
    return {**added, "message": message} if added and isinstance(message, str) else message


def _is_of_asyncio(error: object) -> TypeGuard[Exception]:
    """Whether it is an error of asyncio, or of trio, about a function that was written for the other."""
    kind = type(error)  # exactly these: a class of the handler's own may do anything in its methods
    return kind in (RuntimeError, TypeError, AttributeError) and any(
        text in str(error) for text in _ASYNCIO_ERRORS
    )


def _failed(
    error: object,
    settings: CallSettings | None = None,
    exception: BaseException | None = None,
    *,
    delay: float | None = None,
    dead: bool = False,
) -> Failed:
    """``exception``: the one for the event, if it is another than the error that is stored."""
    redact = None if settings is None else settings.redact
    line = error_line(error.get("message", "") if type(error) is dict else error)
    try:
        described = describe_error(error, redact)
    except PayloadError:
        described = describe_error(line, redact)
    if exception is None and is_instance(error, BaseException):
        exception = error
    return Failed(Failure(described, delay=delay, dead=dead), line, exception)
