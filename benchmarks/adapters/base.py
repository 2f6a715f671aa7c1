"""The protocol between a queue's program and the harness, and its parts that are the same for all queues.

The specification of a program names its role:

    setup     install the schema; emit the version and a query that counts the jobs not durably finished
    fill      add n ready jobs, like those of `send`
    produce   emit `ready`, wait for a command, send in the specified mode, emit `produced`
    work      emit `ready`, handle jobs until standard input is closed; at the command `report` emit `recorded`.
              With `hold`: emit `up` first and wait for a command, so that several workers begin together

Standard library only: this module runs in the peers' own environments.
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
from benchmarks.programs.protocol import Spec, cpu_seconds, emit, handle_commands, now, read_spec

__all__ = ["QUEUE", "Adapter", "Hit", "Recorder", "main"]

QUEUE = "bench"
_PROGRESS_INTERVAL = 0.02

Hit = Callable[[Data], None]


class Recorder:
    """Records when handlers were entered."""

    def __init__(self, *, keep: bool = True) -> None:
        self.count = 0
        self.hit: Hit = self._record if keep else self._count
        self.entered = array("d")
        self.called = array("d")
        self.due = array("d")

    def _record(self, data: Data) -> None:
        """Record the entry of a handler with this payload."""
        self.entered.append(now())
        self.called.append(data["t"])
        self.due.append(data["due"])
        self.count += 1

    def _count(self, data: Data) -> None:
        """Count the entry only, so that the recorder does not grow when memory is measured."""
        self.count += 1

    def as_json(self) -> dict[str, list[float]]:
        """Return the recorded times. Handlers may run meanwhile: they increase `count` last, so it bounds all lists."""
        count = self.count
        times = {"entered": self.entered, "called": self.called, "due": self.due}
        return {name: list(values[:count]) for name, values in times.items()}


class AsyncioRuntime:
    """asyncio, which most peers use."""

    now = staticmethod(now)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def in_thread(self, function: Callable[[], str]) -> str:
        """Run a blocking function."""
        return await asyncio.to_thread(function)

    @asynccontextmanager
    async def tasks(self) -> AsyncIterator[Callable[..., object]]:
        """Yield a function that starts tasks; wait for them at the end of the block."""
        async with asyncio.TaskGroup() as group:
            yield lambda function, *arguments: group.create_task(function(*arguments))

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a program."""

        async def body() -> None:
            await main()

        asyncio.run(body())


class Adapter(abc.ABC):
    """One queue. The catalogue has its `settings`."""

    runtime: Runtime = AsyncioRuntime()

    def __init__(self, dsn: str, settings: dict[str, Any]) -> None:
        self.dsn = dsn
        self.settings = settings

    def findings(self) -> dict[str, Any]:
        """Return further results, which are emitted along with `recorded` or `produced`."""
        return {}

    @abc.abstractmethod
    async def set_up(self) -> dict[str, str]:
        """Install the schema; return `version` and `pending_sql`."""

    @abc.abstractmethod
    async def fill(self, count: int) -> None:
        """Add so many ready jobs, like those of `send`."""

    @abc.abstractmethod
    def producing(self, connections: int) -> AbstractAsyncContextManager[None]:
        """Return a block in which `send` and `send_many` may be called."""

    @abc.abstractmethod
    async def send(self, data: Data) -> None:
        """Send one job."""

    @abc.abstractmethod
    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs by the queue's bulk interface."""

    @abc.abstractmethod
    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Handle jobs for ever; call `ready` when the worker is started."""


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

    def report(command: Spec) -> None:
        emit("recorded", cpu=cpu_seconds(), **recorder.as_json(), **adapter.findings())

    def report_progress() -> None:
        reported = -1
        while True:
            time.sleep(_PROGRESS_INTERVAL)
            if (count := recorder.count) != reported:
                reported = count
                emit("progress", n=count)

    handle_commands(report)
    if spec.get("progress"):
        threading.Thread(target=report_progress, daemon=True).start()
    await adapter.work(recorder.hit, lambda: emit("ready"))


def main(make: Callable[[str, dict[str, Any]], Adapter]) -> None:
    """Run the role of the specification."""
    spec = read_spec()
    adapter = make(spec["dsn"], spec.get("settings", {}))

    async def run_role() -> None:
        if spec["role"] == "setup":
            emit("done", **await adapter.set_up())
        elif spec["role"] == "fill":
            await adapter.fill(spec["n"])
            emit("done")
        elif spec["role"] == "produce":
            await _produce(adapter, spec)
        else:
            await _work(adapter, spec)

    adapter.runtime.run(run_role)
