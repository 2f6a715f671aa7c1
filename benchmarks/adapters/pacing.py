"""When to send: one loop after the other at full speed, in bulk, or at a steady rate whatever happens.

Written once for asyncio and trio, on the few things of `Runtime`. Only the standard library.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

__all__ = ["Data", "Runtime", "Sent", "at_full_speed", "at_rate", "in_bulk"]

Data = dict[str, Any]
Send = Callable[[Data], Awaitable[None]]
SendMany = Callable[[Sequence[Data]], Awaitable[None]]


class Runtime(Protocol):
    """What an event loop has to offer."""

    def now(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def in_thread(self, function: Callable[[], str]) -> str:
        """Run something that blocks."""

    def tasks(self) -> AbstractAsyncContextManager[Callable[..., object]]:
        """A block that gives a function to start tasks with, and waits for them at its end."""

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a program."""


class Sent:
    """How many were sent, when, and how late the sender was at worst."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.end = begin
        self.count = 0
        self.late = 0.0

    def as_json(self) -> dict[str, float]:
        """For the harness."""
        return {"n": self.count, "begin": self.begin, "end": self.end, "late": self.late}


async def at_full_speed(runtime: Runtime, send: Send, senders: int, seconds: float) -> Sent:
    """So many senders, each sending its next job as soon as its last one is sent."""
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
    """All at once, or in chunks, after a warm-up."""
    rows: list[Data] = [{"i": i, "t": 0, "due": 0} for i in range(count)]
    await send_many(rows[: min(1000, count)])
    sent = Sent(runtime.now())
    size = chunk or count
    for first in range(0, count, size):
        await send_many(rows[first : first + size])
    sent.count, sent.end = count, runtime.now()
    return sent


async def at_rate(runtime: Runtime, send: Send, count: int, rate: float) -> Sent:
    """At exactly this rate, without waiting for earlier sends: what is late is late, and says so."""
    sent = Sent(runtime.now())

    async def call(i: int, due: float) -> None:
        called = runtime.now()  # in its own task: to start that is the pacing's business, not the queue's
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
