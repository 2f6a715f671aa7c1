"""The protocol that every queue speaks with the harness, and the parts of it that are the same for all.

A program gets one line that says its role:

    setup     install the schema; answer with the version and a query that counts the jobs not durably finished
    fill      add n ready jobs, as send would
    produce   say `ready`, wait for a line, send in the way that is asked for, say `produced`
    work      say `ready`, handle jobs until standard input ends; at the command `report` say what was recorded.
              With `hold`: say `up` first, and wait for a line, so that several workers begin together

Only the standard library: this runs in the peers' own environments.
"""

import abc
import asyncio
import gc
import sys
import threading
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from benchmarks.adapters.pacing import Data, Runtime, Sent, at_full_speed, at_rate, in_bulk
from benchmarks.programs.link import Spec, cpu_seconds, emit, follow, now, read_spec

__all__ = ["QUEUE", "Adapter", "Hit", "Recorder", "main"]

QUEUE = "bench"
_PROGRESS_INTERVAL = 0.02

Hit = Callable[[Data], None]


class Recorder:
    """What handlers note: first thing, when they were entered."""

    def __init__(self, *, keep: bool = True) -> None:
        self.count = 0
        self.hit: Hit = self._note if keep else self._count
        self.entered = array("d")
        self.called = array("d")
        self.due = array("d")

    def _note(self, data: Data) -> None:
        """A handler was entered with this payload."""
        self.entered.append(now())
        self.called.append(data["t"])
        self.due.append(data["due"])
        self.count += 1

    def _count(self, data: Data) -> None:
        """The same, without keeping anything: for the measurement of memory."""
        self.count += 1

    def as_json(self) -> dict[str, list[float]]:
        """For the harness, from its own thread: handlers may go on meanwhile, and count last."""
        count = self.count
        notes = {"entered": self.entered, "called": self.called, "due": self.due}
        return {name: list(values[:count]) for name, values in notes.items()}


class AsyncioRuntime:
    """The event loop of most peers."""

    now = staticmethod(now)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def in_thread(self, function: Callable[[], str]) -> str:
        """Run something that blocks."""
        return await asyncio.to_thread(function)

    @asynccontextmanager
    async def tasks(self) -> AsyncIterator[Callable[..., object]]:
        """A block that waits for the tasks started in it."""
        async with asyncio.TaskGroup() as group:
            yield lambda function, *arguments: group.create_task(function(*arguments))

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a program."""

        async def body() -> None:
            await main()

        asyncio.run(body())


class Adapter(abc.ABC):
    """One queue. `settings` come from the catalogue."""

    runtime: Runtime = AsyncioRuntime()

    def __init__(self, dsn: str, settings: dict[str, Any]) -> None:
        self.dsn = dsn
        self.settings = settings

    def findings(self) -> dict[str, Any]:
        """What else it has to tell, along with what was recorded or produced."""
        return {}

    @abc.abstractmethod
    async def set_up(self) -> dict[str, str]:
        """Install the schema; return `version` and `pending_sql`."""

    @abc.abstractmethod
    async def fill(self, count: int) -> None:
        """Add so many ready jobs, like those that `send` makes."""

    @abc.abstractmethod
    def producing(self, connections: int) -> AbstractAsyncContextManager[None]:
        """A block in which `send` and `send_many` work."""

    @abc.abstractmethod
    async def send(self, data: Data) -> None:
        """Send one job."""

    @abc.abstractmethod
    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs by the queue's way for many."""

    @abc.abstractmethod
    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Handle jobs for ever; say when it is up, or about to be."""


async def _produce(adapter: Adapter, spec: Spec) -> None:
    async with adapter.producing(spec["senders"]):
        for i in range(spec.get("warmup", 0)):
            await adapter.send({"i": -1 - i, "t": 0, "due": 0})
        gc.collect()
        emit("ready")
        if not await adapter.runtime.in_thread(sys.stdin.readline):
            return
        cpu = cpu_seconds()
        sent = await _send(adapter, spec)
        emit("produced", cpu=cpu_seconds() - cpu, **sent.as_json(), **adapter.findings())
        await adapter.runtime.in_thread(sys.stdin.readline)  # until the harness has read its meters


async def _send(adapter: Adapter, spec: Spec) -> Sent:
    if spec["mode"] == "speed":
        return await at_full_speed(adapter.runtime, adapter.send, spec["senders"], spec["seconds"])
    if spec["mode"] == "bulk":
        return await in_bulk(adapter.runtime, adapter.send_many, spec["n"], spec.get("chunk", 0))
    return await at_rate(adapter.runtime, adapter.send, spec["n"], spec["rate"])


async def _work(adapter: Adapter, spec: Spec) -> None:
    if spec.get("hold"):
        emit("up")
        sys.stdin.readline()
    recorder = Recorder(keep=spec.get("record", True))

    def obey(command: Spec) -> None:
        emit("recorded", cpu=cpu_seconds(), **recorder.as_json(), **adapter.findings())

    def report_progress() -> None:
        reported = -1
        while True:
            time.sleep(_PROGRESS_INTERVAL)
            if (count := recorder.count) != reported:
                reported = count
                emit("progress", n=count)

    follow(obey)
    if spec.get("progress"):
        threading.Thread(target=report_progress, daemon=True).start()
    await adapter.work(recorder.hit, lambda: emit("ready"))


def main(make: Callable[[str, dict[str, Any]], Adapter]) -> None:
    """Play the role that the first line asks for."""
    spec = read_spec()
    adapter = make(spec["dsn"], spec.get("settings", {}))

    async def play() -> None:
        if spec["role"] == "setup":
            emit("done", **await adapter.set_up())
        elif spec["role"] == "fill":
            await adapter.fill(spec["n"])
            emit("done")
        elif spec["role"] == "produce":
            await _produce(adapter, spec)
        else:
            await _work(adapter, spec)

    adapter.runtime.run(play)
