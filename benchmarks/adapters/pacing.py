"""When a producer sends: at full speed, in bulk, or at a steady rate that does not depend on the queue.

The same code runs on asyncio and on trio, behind the few methods of `Runtime`. Standard library only.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

__all__ = ["Data", "Runtime", "Sent", "at_full_speed", "at_rate", "in_bulk"]

Data = dict[str, Any]
Send = Callable[[Data], Awaitable[None]]
SendMany = Callable[[Sequence[Data]], Awaitable[None]]


class Runtime(Protocol):
    """The parts of an event loop that the pacing needs."""

    def now(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def in_thread(self, function: Callable[[], str]) -> str:
        """Run a blocking function."""

    def tasks(self) -> AbstractAsyncContextManager[Callable[..., object]]:
        """Yield a function that starts tasks; wait for them at the end of the block."""

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a program."""


class Sent:
    """How many jobs were sent, when, and how late the sender was at most."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.end = begin
        self.count = 0
        self.late = 0.0

    def as_json(self) -> dict[str, float]:
        """Return the values for the harness."""
        return {"n": self.count, "begin": self.begin, "end": self.end, "late": self.late}


async def at_full_speed(runtime: Runtime, send: Send, senders: int, seconds: float) -> Sent:
    """Run several senders, each of which sends its next job as soon as the last one is sent."""
    sent = Sent(runtime.now())
    deadline = sent.begin + seconds

    async def loop() -> None:
        while (called := runtime.now()) < deadline:
            sent.count += 1
            await send({"i": sent.count, "t": called, "due": 0})

    async with runtime.tasks() as start:
        for _ in range(senders):
            start(loop)
    sent.end = runtime.now()
    return sent


async def in_bulk(runtime: Runtime, send_many: SendMany, count: int, chunk: int) -> Sent:
    """Send all jobs at once, or in chunks, after a warm-up."""
    rows: list[Data] = [{"i": i, "t": 0, "due": 0} for i in range(count)]
    await send_many(rows[: min(1000, count)])
    sent = Sent(runtime.now())
    size = chunk or count
    for first in range(0, count, size):
        await send_many(rows[first : first + size])
    sent.count, sent.end = count, runtime.now()
    return sent


async def at_rate(runtime: Runtime, send: Send, count: int, rate: float) -> Sent:
    """Send at exactly this rate without waiting for earlier sends (an open loop), and record lateness."""
    sent = Sent(runtime.now())

    async def call(i: int, due: float) -> None:
        called = runtime.now()  # in the task itself: starting the task is not the queue's work
        sent.late = max(sent.late, called - due)
        sent.count += 1
        await send({"i": i, "t": called, "due": due})

    async with runtime.tasks() as start:
        for i in range(count):
            due = sent.begin + i / rate
            if (pause := due - runtime.now()) > 0:
                await runtime.sleep(pause)
            start(call, i, due)
    sent.end = runtime.now()
    return sent
