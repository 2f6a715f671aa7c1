"""Processes that tests start, wait for, and kill."""

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
    """Poll until the condition is true, where no event exists; return its value."""
    with trio.fail_after(60):
        while not (found := condition()):  # noqa: ASYNC110
            await trio.sleep(0.02)
    return found


@attrs.define(eq=False)
class Program:
    """A process, and its output so far."""

    process: trio.Process
    output: bytes = b""
    _more: trio.Event = attrs.field(factory=trio.Event)

    async def read_output(self) -> None:
        """Read the output to its end."""
        assert self.process.stdout is not None
        async with self.process.stdout as stream:
            async for chunk in stream:
                self.output += chunk
                self._more.set()
                self._more = trio.Event()

    async def wait_for(self, *texts: str) -> None:
        """Wait until the output contains all these texts."""
        with trio.fail_after(60):
            while not all(text.encode() in self.output for text in texts):
                await self._more.wait()

    async def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, and wait for the end of the process."""
        self.process.send_signal(number)
        await self.process.wait()


@asynccontextmanager
async def open_programs() -> AsyncIterator["Programs"]:
    """Open a block in which processes can be started; its end kills those that still run."""
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
        """Start Python with these arguments; standard output and standard error are one stream."""
        process = await trio.lowlevel.open_process(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=HERE,
            env=os.environ | environment,
        )
        program = Program(process)
        self.started.append(program)
        self._nursery.start_soon(program.read_output)
        return program

    async def victim(self, dsn: str, queue: str, place: str = "") -> Program:
        """Start a worker on a queue, which stops at a pause point if one is given."""
        return await self.start("victim.py", dsn, queue, *([place] if place else []))
