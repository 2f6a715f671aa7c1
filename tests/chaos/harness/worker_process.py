"""A worker process that is started again whenever it ends."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import trio

from benchmarks.harness.proxy import Proxy
from benchmarks.programs.protocol import Spec

__all__ = ["WorkerProcess"]

_ROOT = Path(__file__).parents[3]


@attrs.define(eq=False)
class WorkerProcess:
    """One worker by name. Its process changes with each kill; its name and its proxy stay."""

    name: str
    module: str
    spec: Spec
    proxy: Proxy
    is_blocking: bool
    """A blocking client cannot find out by itself that a connection is silent."""
    clocks: Iterator[float]
    """The clock error of each new process, in seconds."""
    process: trio.Process | None = None
    ready: bool = False
    stopped: bool = False

    @property
    def _stderr(self) -> Path:
        return Path(self.spec["folder"], f"{self.name}.err")

    async def run_forever(self) -> None:
        """Start the process, and start it again each time it has ended."""
        while True:
            try:
                await self._run_once()
            finally:
                if self.process is not None and self.process.returncode is None:
                    self.process.kill()

    async def _run_once(self) -> None:
        self.ready = self.stopped = False
        async with await trio.open_file(self._stderr, "ab") as stderr:
            self.process = await trio.lowlevel.open_process(
                [sys.executable, "-W", "ignore", "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr.wrapped,
                cwd=_ROOT,
            )
        spec = {**self.spec, "name": self.name, "clock": next(self.clocks)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            await self.process.stdin.send_all(json.dumps(spec).encode() + b"\n")
            async for _ in self.process.stdout:  # its only line is the event `ready`
                self.ready = True
        except trio.BrokenResourceError:
            pass
        self.ready = False
        await self.process.wait()
