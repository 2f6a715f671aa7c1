"""Processes to be killed, and a wire that loses answers."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import attrs
import trio

T = TypeVar("T")

HERE = Path(__file__).parent


async def until(condition: Callable[[], T]) -> T:
    """Wait for something of which nobody tells: look again and again, and return what was found."""
    with trio.fail_after(60):
        while not (found := condition()):  # noqa: ASYNC110
            await trio.sleep(0.02)
    return found


@attrs.define(eq=False)
class Program:
    """A process of ours, and what it has said so far."""

    process: trio.Process
    said: bytes = b""
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def listen(self) -> None:
        """Read what it says, until its end."""
        assert self.process.stdout is not None
        async with self.process.stdout as stream:
            async for chunk in stream:
                self.said += chunk
                self._news.set()
                self._news = trio.Event()

    async def says(self, *words: str) -> None:
        """Wait until it has said something."""
        with trio.fail_after(60):
            while not all(word.encode() in self.said for word in words):
                await self._news.wait()

    async def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill it, and see it dead."""
        self.process.send_signal(number)
        await self.process.wait()


@asynccontextmanager
async def open_programs() -> AsyncIterator["Programs"]:
    """Starts processes, and leaves none behind."""
    async with trio.open_nursery() as nursery:
        programs = Programs(nursery)
        try:
            yield programs
        finally:
            with trio.CancelScope(shield=True):
                for program in programs.started:
                    if program.process.returncode is None:
                        await program.kill()
        nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class Programs:
    """The processes of one test."""

    _nursery: trio.Nursery
    started: list[Program] = attrs.field(factory=list)

    async def start(self, *command: str, **environment: str) -> Program:
        """Start one; standard output and standard error are one stream."""
        process = await trio.lowlevel.open_process(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=HERE,
            env=os.environ | environment,
        )
        program = Program(process)
        self.started.append(program)
        self._nursery.start_soon(program.listen)
        return program

    async def victim(self, dsn: str, queue: str, place: str = "") -> Program:
        """Start a worker on a queue, which pauses at a place."""
        return await self.start("victim.py", dsn, queue, *([place] if place else []))
