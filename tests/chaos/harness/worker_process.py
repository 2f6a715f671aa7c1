"""A worker process that is started again whenever it ends."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import trio

from benchmarks.harness.proxy import Proxy
from benchmarks.programs.protocol import Spec
from tests.chaos.harness.journal import Journal

__all__ = ["OTHER_VERSION", "WorkerProcess", "unpack_version"]

OTHER_VERSION = "other-version"
"""The folder of the other version of trioboss."""
_ROOT = Path(__file__).parents[3]


def unpack_version(revision: str | None, folder: Path) -> list[Path]:
    """Return the folders of the versions of trioboss that take part: this one, and that of a revision, if any."""
    if revision is None:
        return [_ROOT]
    target = folder / OTHER_VERSION
    target.mkdir()
    archive = subprocess.run(
        ["git", "archive", revision, "trioboss"], cwd=_ROOT, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return [_ROOT, target]


def _path(version: Path) -> str:
    """Return the search path of a worker: the harness is always this one."""
    return os.pathsep.join(dict.fromkeys((str(version), str(_ROOT))))


@attrs.define(eq=False)
class WorkerProcess:
    """One worker by name. Its process changes with each kill; its name and its proxy stay."""

    name: str
    module: str
    spec: Spec
    proxy: Proxy
    is_blocking: bool
    """A blocking client cannot find out by itself that a connection is silent."""
    journal: Journal
    """Gets the exit code of each process."""
    clocks: Iterator[float]
    """The clock error of each new process, in seconds."""
    versions: Iterator[Path]
    """The folder whose package trioboss each new process imports."""
    process: trio.Process | None = None
    ready: bool = False
    stopped: bool = False
    is_steady: bool = False
    """It is neither killed nor stopped. Faults of the network and the server reach it."""

    @property
    def megabytes(self) -> float | None:
        """The resident memory of the process; None if none is running."""
        if self.process is None or self.process.returncode is not None:
            return None
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20

    @property
    def is_free(self) -> bool:
        """Whether the process may be killed or stopped: it runs, and is not about to be resumed."""
        return self.ready and not self.stopped and not self.is_steady

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
                env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": _path(next(self.versions))},
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
        code = await self.process.wait()
        self.journal.write("exit", name=self.name, code=code)
