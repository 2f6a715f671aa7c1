"""Handlers of other kinds, as trio handlers: plain functions in threads, and asyncio functions."""

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import trio

from trioboss.actors.runner import Handler, RunningJob
from trioboss.errors import UsageError
from trioboss.model.check import shown
from trioboss.model.job import Duration, HandedJob, Job
from trioboss.model.payload import Json
from trioboss.model.states import JobState

__all__ = ["ThreadHandler", "ThreadJob", "asyncio_handler", "check_handler", "open_asyncio"]


def check_handler(handler: object, *, thread: bool, asyncio: bool) -> None:
    """Raise UsageError unless the handler is of the kind that the arguments say."""
    if thread and asyncio:
        raise UsageError("thread, asyncio: a handler runs in a thread or in asyncio, not in both")
    if not callable(handler):
        raise UsageError(f"handler: {shown(handler)} cannot be called")
    meant: Any = handler
    while isinstance(meant, partial):
        meant = meant.func
    is_async = inspect.iscoroutinefunction(meant) or inspect.iscoroutinefunction(meant.__call__)
    if thread and is_async:
        raise UsageError("handler: an async function: thread=True is for plain functions")
    if not thread and not is_async and inspect.isroutine(meant):
        raise UsageError("handler: not an async function: pass thread=True to run it in a thread")


@attrs.frozen(eq=False)
class _WrappedJob(HandedJob):
    """A RunningJob for handlers of another kind."""

    _job: RunningJob

    def __repr__(self) -> str:
        return repr(self._job)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        return self._job.job

    def settled_manually(self, state: JobState, error: str, *, certain: bool) -> None:
        """A call of the handler has settled the attempt."""
        self._job.settled_manually(state, error, certain=certain)


@attrs.frozen(eq=False, repr=False)
class ThreadJob(_WrappedJob):
    """A RunningJob for handlers in threads: its methods block."""

    def extend(self, seconds: Duration) -> None:
        """Let the lease expire later."""
        trio.from_thread.run(self._job.extend, seconds)

    def touch(self) -> None:
        """Send a heartbeat now."""
        trio.from_thread.run(self._job.touch)

    def progress(self, value: Json) -> None:
        """Record how far the job has come."""
        trio.from_thread.run(self._job.progress, value)

    def complete(self, output: Json = None) -> None:
        """Settle the job now."""
        trio.from_thread.run(self._job.complete, output)


@attrs.define(eq=False)
class ThreadHandler:
    """Runs a plain function in a thread. A thread cannot be cancelled: when its job is, it is left running."""

    _function: Callable[[Any], Any]
    _left_behind: dict[Job, trio.Event] = attrs.field(factory=dict, init=False)
    """The jobs of cancelled calls, with an event that is set when their thread ends."""
    # No limit of its own: there is one call for each slot, and slots wait for the threads they left behind.
    _limiter: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(math.inf), init=False)

    async def __call__(self, job: RunningJob | list[RunningJob]) -> Any:
        """Call the function with the job, or the list of jobs."""
        ended = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def body() -> Any:
            try:
                return self._function(_for_thread(job))
            finally:
                token.run_sync_soon(ended.set)

        # A call that is cancelled already starts no thread; from here on the thread starts in any case.
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            return await trio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=self._limiter)
        except trio.Cancelled:
            self._left_behind |= {each.job: ended for each in (job if isinstance(job, list) else [job])}
            raise

    async def wait_left_behind(self, jobs: list[Job]) -> None:
        """Wait until the thread of a cancelled call has ended, if it was left running."""
        for event in [self._left_behind.pop(job) for job in jobs if job in self._left_behind]:
            await event.wait()


def _for_thread(job: RunningJob | list[RunningJob]) -> "ThreadJob | list[ThreadJob]":
    return [ThreadJob(each) for each in job] if isinstance(job, list) else ThreadJob(job)


@attrs.frozen(eq=False, repr=False)
class _AsyncioJob(_WrappedJob):
    """A RunningJob for asyncio handlers: its methods can be awaited there."""

    def __getattr__(self, name: str) -> Any:
        import trio_asyncio

        value = getattr(self._job, name)
        return trio_asyncio.trio_as_aio(value) if inspect.iscoroutinefunction(value) else value


def asyncio_handler(handler: Callable[[Any], Any]) -> Handler:
    """Run an asyncio function through trio-asyncio, in the loop of `open_asyncio`."""
    # Imported here and not above: importing it changes asyncio for the whole process.
    import trio_asyncio

    in_trio = trio_asyncio.aio_as_trio(handler)

    async def call(job: Any) -> Any:
        wrapped = [_AsyncioJob(each) for each in job] if isinstance(job, list) else _AsyncioJob(job)
        return await in_trio(wrapped)

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
