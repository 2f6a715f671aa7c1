"""Keeps worker processes: starts them, and starts them again when they were killed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import trio

from benchmarks.chaos.proxy import Link
from benchmarks.programs.link import Spec

__all__ = ["Kept"]

_ROOT = Path(__file__).parents[2]


@attrs.define(eq=False)
class Kept:
    """A worker's place: the process in it changes, its link stays."""

    name: str
    module: str
    spec: Spec
    link: Link
    blocking: bool
    """It cannot find out by itself that a connection is dead."""
    clocks: Any
    """Gives the error of the clock of each process."""
    process: trio.Process | None = None
    ready: bool = False
    stopped: bool = False
    births: int = 0

    @property
    def _complaints(self) -> Path:
        return Path(self.spec["folder"], f"{self.name}.err")

    async def keep(self) -> None:
        """Start it again and again."""
        while True:
            try:
                await self._live()
            finally:
                if self.process is not None and self.process.returncode is None:
                    self.process.kill()

    async def _live(self) -> None:
        self.ready = self.stopped = False
        self.births += 1
        async with await trio.open_file(self._complaints, "ab") as complaints:
            self.process = await trio.lowlevel.open_process(
                [sys.executable, "-W", "ignore", "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints.wrapped,
                cwd=_ROOT,
            )
        spec = {**self.spec, "name": self.name, "clock": next(self.clocks)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            await self.process.stdin.send_all(json.dumps(spec).encode() + b"\n")
            async for _ in self.process.stdout:
                self.ready = True
        except trio.BrokenResourceError:
            pass
        self.ready = False
        await self.process.wait()
