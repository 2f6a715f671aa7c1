"""Fixtures: all actors run on a virtual clock, on which only sleeping takes time."""

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest
import trio
import trio.testing
from scripted_listening import ScriptedServer
from scripted_ports import ScriptedWork

from trioboss.actors.actor import Doorbell
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.dispatcher import BusyNotifier
from trioboss.actors.listener import Listener
from trioboss.actors.reporter import Reporter
from trioboss.actors.router import NotificationRouter
from trioboss.actors.slots import SlotSettings
from trioboss.actors.worker import Worker, WorkerSettings
from trioboss.model.settle_and_claim import ClaimRequest
from trioboss.testing import Recorder, record

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
WorkerOpener = Callable[..., AbstractAsyncContextManager[Worker]]


def run_in_virtual_time(
    test: Callable[..., Any], *, clock: trio.abc.Clock | None, instruments: Sequence[trio.abc.Instrument]
) -> Any:
    """Let the clock jump to the next deadline whenever all tasks wait. Safe only where no task waits for real I/O.

    The guard ends a test in which all tasks wait for each other.
    """

    async def guarded() -> None:
        with trio.fail_after(100_000):
            await test()

    clock = clock or trio.testing.MockClock(autojump_threshold=0)
    return trio.run(guarded, clock=clock, instruments=instruments)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all async tests of this folder like that, except modules with IN_REAL_TIME."""
    for item in items:
        if Path(__file__).parent not in item.path.parents or getattr(item.module, "IN_REAL_TIME", False):
            continue
        if inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.trio(run=run_in_virtual_time), append=False)


@pytest.fixture
def work() -> ScriptedWork:
    """A database in memory."""
    return ScriptedWork()


@pytest.fixture
def reporter() -> Reporter:
    """The reporter of the actors."""
    return Reporter()


@pytest.fixture
async def events(reporter: Reporter) -> AsyncIterator[Recorder]:
    """The events that they have reported."""
    async with record(reporter.subscribe()) as recorder:
        yield recorder


@pytest.fixture
def open_worker(work: ScriptedWork, reporter: Reporter) -> WorkerOpener:
    """Run a worker for the length of a block; leaving it is the graceful stop."""

    @asynccontextmanager
    async def open_worker(
        handler: Callable[[Any], Any],
        *,
        queue: str = "q",
        queues: tuple[str, ...] = ("q",),
        grace: float = 1000.0,
        thread: bool = False,
        asyncio: bool = False,
        **slots: Any,
    ) -> AsyncIterator[Worker]:
        settings = WorkerSettings(
            queue=queue,
            handler=handler,
            slots=SlotSettings(max_bytes=1000, **slots),
            request=ClaimRequest(),
            thread=thread,
            asyncio=asyncio,
            name="test",
        )
        worker = Worker(uuid4(), settings, work, reporter, BusyNotifier())
        worker.set_queues(dict.fromkeys(queues, LONG_AGO))
        async with trio.open_nursery() as nursery:
            await nursery.start(worker.run)
            yield worker
            worker.stop(grace)

    return open_worker


@attrs.define(eq=False)
class ListenerSetting:
    """A listener that runs, and everything around it."""

    server: ScriptedServer
    router: NotificationRouter
    listener: Listener
    clock: DatabaseClock
    nursery: trio.Nursery


@pytest.fixture
async def server() -> ScriptedServer:
    """The server of the listener."""
    return ScriptedServer()


@pytest.fixture
async def listening(
    server: ScriptedServer, reporter: Reporter, nursery: trio.Nursery
) -> Callable[..., ListenerSetting]:
    """Start a listener on the server."""

    def start(*, grace: float = 5.0, candidate: bool = True, polling: bool = False) -> ListenerSetting:
        router = NotificationRouter()
        clock = DatabaseClock(Doorbell())
        listener = Listener(server, router, clock, reporter, grace, candidate, polling)
        nursery.start_soon(listener.run)
        return ListenerSetting(server, router, listener, clock, nursery)

    return start
