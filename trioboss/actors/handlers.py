"""Handlers of other kinds, as trio handlers: plain functions in threads, and asyncio functions."""

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import trio

from trioboss.actors.leased_job import CallSettings, LeasedJob
from trioboss.actors.middleware import AnyMiddleware, wrap_handler
from trioboss.actors.runner import Call
from trioboss.actors.wrapped_jobs import AsyncioJob, ThreadJob
from trioboss.errors import UsageError
from trioboss.model.check import shown
from trioboss.model.described_error import readable_error
from trioboss.model.job import Job

__all__ = ["HandlerStack", "JobClasses", "ThreadHandler", "check_handler", "make_stack", "open_asyncio"]


def check_handler(handler: object, *, thread: bool, asyncio: bool) -> None:
    """Raise UsageError, with the handler's name, unless it is of the kind that the arguments say."""
    if thread and asyncio:
        raise UsageError("thread, asyncio: a handler runs in a thread or in asyncio, not in both")
    if not callable(handler):
        raise UsageError(f"handler: {shown(handler)} cannot be called")
    meant = _unwrap(handler)
    name = getattr(meant, "__qualname__", None) or f"{type(meant).__qualname__}.__call__"
    if isinstance(meant, type):
        raise UsageError(f"handler: {name} is a class: pass an instance of it, or a function")
    functions = (meant, meant.__call__)
    if thread and any(map(inspect.iscoroutinefunction, functions)):
        raise UsageError(f"handler: {name} is an async function: thread=True is for plain functions")
    if any(map(inspect.isasyncgenfunction, functions)):
        raise UsageError(f"handler: {name} is an async generator: a handler returns its output")
    if any(map(inspect.isgeneratorfunction, functions)):
        raise UsageError(f"handler: {name} is a generator: a handler returns its output")
    if not thread and not any(map(inspect.iscoroutinefunction, functions)):
        raise UsageError(f"handler: {name} is not an async function: {_remedy(handler)}")
    if not _takes_a_job(handler):
        raise UsageError(f"handler: {name} cannot be called with one argument, the job")


def _remedy(handler: Any) -> str:
    """How to make a handler of a function that is not async."""
    if inspect.iscoroutinefunction(inspect.unwrap(handler)):
        return (
            "its decorator replaces it by a plain function; let that one be async, too, and await the other"
        )
    return "write `async def`, or pass thread=True to run a plain function in a thread"


def _takes_a_job(handler: Any) -> bool:
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):  # a function of C may have none
        return True
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _unwrap(handler: Any) -> Any:
    """The function or object that is called in the end: not a partial, nor an object around a function (Task)."""
    while True:
        if isinstance(handler, partial):
            handler = handler.func
        elif (
            not inspect.isroutine(handler)
            and not isinstance(handler, type)
            and hasattr(handler, "__wrapped__")
        ):
            handler = handler.__wrapped__
        else:
            return handler


@attrs.frozen
class JobClasses:
    """The classes of the jobs that handlers of each kind get. The API has its own, which have the boss."""

    trio: type[LeasedJob[Any]] = LeasedJob
    thread: type[ThreadJob[Any]] = ThreadJob
    asyncio: type[AsyncioJob[Any]] = AsyncioJob


@attrs.frozen
class HandlerStack:
    """A handler as slots call it, with everything that is resolved once for each worker."""

    call: Call
    job_class: type[LeasedJob[Any]]
    settings: CallSettings
    threads: "ThreadHandler | None"
    """The part of ``call`` that runs the handler in threads, for slots that have to wait for one; None if it does not
    run in threads.
    """


def make_stack(
    handler: Callable[[Any], Any],
    settings: CallSettings,
    classes: JobClasses,
    middleware: Sequence[AnyMiddleware],
    *,
    thread: bool,
    asyncio: bool,
    batches: bool,
) -> HandlerStack:
    """Put the parts around a handler: its kind, the decoding of data, and the middleware outermost."""
    threads = ThreadHandler(handler, classes.thread) if thread else None
    call: Call = handler
    if threads is not None:
        call = threads
    elif asyncio:
        call = _asyncio_handler(handler, classes.asyncio)
    if settings.decode is not None and not batches:  # run_batch fails single jobs of a batch itself
        call = _decoding(call)
    return HandlerStack(wrap_handler(call, middleware), classes.trio, settings, threads)


def _decoding(inner: Call) -> Call:
    """Decode the data before the handler is called, so that one that does not fit fails the job."""

    async def call(job: LeasedJob[Any]) -> Any:
        _ = job.data
        return await inner(job)

    return call


@attrs.define(eq=False)
class ThreadHandler:
    """Runs a plain function in a thread. A thread cannot be cancelled: when its job is, it is left running."""

    _function: Callable[[Any], Any]
    _job_class: type[ThreadJob[Any]] = ThreadJob
    _left_behind: dict[Job, trio.Event] = attrs.field(factory=dict, init=False)
    """The jobs of cancelled calls, with an event that is set when their thread ends."""
    # No limit of its own: there is one call for each slot, and slots wait for the threads they left behind.
    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(math.inf), init=False)

    async def __call__(self, job: LeasedJob[Any] | list[LeasedJob[Any]]) -> Any:
        """Call the function with the job, or the list of jobs."""
        wrap = self._job_class
        wrapped = [wrap(each) for each in job] if isinstance(job, list) else wrap(job)
        ended = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def body() -> Any:
            try:
                return _refuse_coroutine(self._function(wrapped))
            except BaseException as error:
                if (readable := readable_error(error)) is not error:
                    raise readable from None
                raise
            finally:
                token.run_sync_soon(ended.set)

        # A call that is cancelled already starts no thread; from here on the thread starts in any case.
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            # Abandoned, so that the attempt is settled now; the slot waits for the thread (`wait_left_behind`).
            return await trio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=self._limiter)
        except trio.Cancelled:
            self._left_behind |= {each.job: ended for each in (job if isinstance(job, list) else [job])}
            raise

    async def wait_left_behind(self, jobs: list[Job]) -> None:
        """Wait until the thread of a cancelled call has ended, if it was left running."""
        for event in [self._left_behind.pop(job) for job in jobs if job in self._left_behind]:
            await event.wait()


def _refuse_coroutine(value: object) -> object:
    """Nobody would await a coroutine that a plain function returns: it fails the job, with the reason."""
    if inspect.iscoroutine(value):
        value.close()
        raise UsageError(
            f"handler: {value.__qualname__} is an async function behind a plain one, which returned its coroutine: "
            "write `async def` and await it, without thread=True"
        )
    return value


def _asyncio_handler(handler: Callable[[Any], Any], wrap: type[AsyncioJob[Any]]) -> Call:
    """Run an asyncio function through trio-asyncio, in the loop of `open_asyncio`."""
    # Imported here and not above: importing it changes asyncio for the whole process.
    try:
        import trio_asyncio
    except Exception as error:  # trio-asyncio 0.16 derives from a class that Python 3.14 does not have
        raise UsageError(
            f"asyncio=True: trio-asyncio cannot be imported here: {error}: write a trio handler, "
            "or a plain function with thread=True"
        ) from error

    async def call_handler(job: Any) -> Any:
        try:
            return await handler(job)
        except BaseException as error:
            if (readable := readable_error(error)) is not error:
                raise readable from None
            raise

    in_trio = trio_asyncio.aio_as_trio(call_handler)

    async def call(job: LeasedJob[Any] | list[LeasedJob[Any]]) -> Any:
        return await in_trio([wrap(each) for each in job] if isinstance(job, list) else wrap(job))

    return call


@asynccontextmanager
async def open_asyncio(wanted: bool) -> AsyncIterator[None]:
    """Run the asyncio loop that asyncio handlers need for the length of a block, if it is wanted."""
    if not wanted:
        yield
        return
    import trio_asyncio

    async with trio_asyncio.open_loop() as loop:
        _harden(loop)
        try:
            yield
        finally:
            del loop.stop


def _harden(loop: Any) -> None:
    """Let nothing that a handler does end the loop: other handlers run in it, and would wait for ever."""
    loop.set_exception_handler(asyncio.BaseEventLoop.default_exception_handler)
    for name in ("call_soon", "call_soon_threadsafe"):
        setattr(loop, name, partial(_call_soon, loop, getattr(loop, name)))
    for name in ("call_later", "call_at", "_add_reader", "_add_writer"):
        setattr(loop, name, partial(_call_when, loop, getattr(loop, name)))
    loop.stop = _refuse_to_stop


def _call_soon(loop: Any, call: Callable[..., Any], callback: Any, *args: Any, **context: Any) -> Any:
    return call(_guarded, loop, callback, *args, **context)


def _call_when(
    loop: Any, call: Callable[..., Any], when: Any, callback: Any, *args: Any, **context: Any
) -> Any:
    return call(when, _guarded, loop, callback, *args, **context)


def _refuse_to_stop() -> None:
    raise RuntimeError("a handler cannot stop this loop: other handlers run in it")


@trio.lowlevel.enable_ki_protection
def _guarded(loop: Any, callback: Callable[..., Any], *args: Any) -> None:
    """Run a callback. asyncio lets SystemExit and KeyboardInterrupt end its loop; raised here they are the handler's,
    as in slots: the main task gets the interrupt of the terminal.
    """
    try:
        callback(*args)
    except (SystemExit, KeyboardInterrupt) as error:
        # A task keeps its exception for the code that awaits it.
        if not isinstance(getattr(callback, "__self__", None), asyncio.Task):
            message = f"{type(error).__name__} in a callback of a handler"
            loop.call_exception_handler({"message": message, "exception": error})
