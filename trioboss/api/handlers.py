"""The types of handlers and of what goes around them: middleware, lifespans, and the options of `work`."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from trioboss.actors.middleware import AnyMiddleware
from trioboss.api.running_job import D, RunningJob, Surroundings
from trioboss.errors import DataMismatch, UsageError
from trioboss.model.check import shown
from trioboss.model.decoding import Misfit, make_decoder
from trioboss.model.job import Job

if TYPE_CHECKING:
    # For the annotation only: a boss enters the lifespans of its workers.
    from trioboss.api.boss import Boss

__all__ = [
    "CallNext",
    "Handler",
    "Lifespan",
    "Middleware",
    "WorkOptions",
    "check_all_middleware",
    "check_middleware",
    "enter_lifespan",
    "make_decode",
]

Handler: TypeAlias = Callable[[RunningJob[D]], Awaitable[object]]
"""``async def handler(job)``: its return value is the job's output, an exception the job's failure."""

CallNext: TypeAlias = Callable[[Any], Awaitable[Any]]
"""The rest of the way to the handler: ``output = await call_next(job)``."""

Middleware: TypeAlias = Callable[[Any, CallNext], Awaitable[Any]]
"""``async def middleware(job, call_next)``: called around every call of a handler.

It returns what ``await call_next(job)`` returned, or another output. It sees the handler's exception, and may raise
another one: ``raise job.retry(delay=60) from error``, ``raise job.dead_letter("…") from error``. A cancellation of the
job that arrives before the handler has returned cannot be swallowed. Handlers with ``batch_size`` get a list of jobs,
and so does their middleware.
"""

Lifespan: TypeAlias = (
    Callable[["Boss"], AbstractAsyncContextManager[object]]
    | Callable[[], AbstractAsyncContextManager[object]]
    | AbstractAsyncContextManager[object]
)
"""An async context manager, or a function that makes one: with the boss, or without arguments. The value that it
yields is `job.context`. It is entered before the first job starts, and left after the last one has ended."""


class WorkOptions(TypedDict, total=False):
    """The options of `work` that are the same for every kind of handler.

    - ``concurrency`` (1): how many calls run at once; 1 to 1,000,000,000.
    - ``prefetch`` (None: 0): how many jobs are leased ahead of free slots; their leases run while they wait; 0 to
      1,000,000,000.
    - ``min_priority``, ``max_priority`` (None: any): only jobs of such a priority; -2,147,483,648 to 2,147,483,647.
    - ``priority`` (True): False claims in the order of sending alone.
    - ``middleware`` (none): async functions ``(job, call_next)`` around every call.
    - ``lifespan`` (None): an async context manager that is open while the worker runs.
    """

    concurrency: int
    """How many calls of the handler run at once. Example: ``concurrency=20``."""
    prefetch: int | None
    """How many jobs are leased ahead of free slots; their leases run while they wait. None: none. Example:
    ``prefetch=10``.
    """
    min_priority: int | None
    """Only jobs of at least this priority are claimed. None: of any. Example: ``min_priority=10``."""
    max_priority: int | None
    """Only jobs of at most this priority are claimed. None: of any. Example: ``max_priority=9``."""
    priority: bool
    """False: jobs are claimed in the order of sending alone. Example: ``priority=False``."""
    middleware: Sequence[Middleware]
    """Async functions ``(job, call_next)`` around every call, inside of the middleware of the app and of the boss.
    Example: ``middleware=[log_jobs]``.
    """
    lifespan: Lifespan | None
    """An async context manager that is open while this worker runs; its value is `job.context`. None: none. Example:
    ``lifespan=open_clients``.
    """


def check_middleware(middleware: object) -> AnyMiddleware:
    """Raise UsageError, with its name, for what is not an async function of two arguments."""
    called: Any = middleware if inspect.isroutine(middleware) else getattr(middleware, "__call__", None)  # noqa: B004
    name = getattr(middleware, "__qualname__", None) or shown(middleware)
    if not inspect.iscoroutinefunction(called):
        raise UsageError(
            f"middleware: {name} is not an async function: write async def middleware(job, call_next)"
        )
    try:
        inspect.signature(called).bind(None, None)
    except TypeError:
        raise UsageError(f"middleware: {name} does not take the arguments (job, call_next)") from None
    return called  # type: ignore[no-any-return]


def check_all_middleware(given: Sequence[Middleware]) -> list[AnyMiddleware]:
    """Raise UsageError for what is not several of them."""
    several: object = given
    if not isinstance(several, Iterable):
        raise UsageError(f"middleware: {shown(several)} is not a list of functions: write middleware=[…]")
    return [check_middleware(each) for each in several]


def make_decode(data: object) -> Callable[[Job], Any] | None:
    """The function that decodes the data of a worker's jobs, if it declares a type for them."""
    if data is None:
        return None
    decoder = make_decoder(data)
    expected = data.__qualname__ if isinstance(data, type) else str(data)

    def decode(job: Job) -> Any:
        try:
            return decoder.decode(job.data)
        except Misfit as misfit:
            problem, path = misfit.problem, f"data{misfit.where}"
            raise DataMismatch(job.queue, job.id, expected, path, problem) from misfit.__cause__
        except Exception as error:  # of a decoder that is not ours
            raise DataMismatch(job.queue, job.id, expected, "data", str(error)) from error

    return decode


@asynccontextmanager
async def enter_lifespan(lifespan: Lifespan, surroundings: Surroundings) -> AsyncIterator[None]:
    """A lifespan for the length of a block. The value that it yields is the context of the jobs."""
    async with _call_lifespan(lifespan, surroundings.boss) as surroundings.context:
        yield


def _call_lifespan(lifespan: Any, boss: "Boss") -> AbstractAsyncContextManager[object]:
    if hasattr(lifespan, "__aenter__") and not isinstance(lifespan, type):
        return lifespan  # type: ignore[no-any-return]  # a manager already: it can be entered once
    if not callable(lifespan):
        raise UsageError(f"lifespan: {shown(lifespan)} is not an async context manager, nor makes one")
    takes_boss = any(
        parameter.kind
        in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
        for parameter in inspect.signature(lifespan).parameters.values()
    )
    manager = lifespan(boss) if takes_boss else lifespan()
    if not hasattr(manager, "__aenter__"):
        raise UsageError(
            f"lifespan: {getattr(lifespan, '__qualname__', shown(lifespan))} does not return an async context "
            "manager: decorate it with contextlib.asynccontextmanager"
        )
    return manager  # type: ignore[no-any-return]
