"""Starts a command of the pipeline as users do, and kills it and all its processes at a point of its code."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.harness.processes import ProgramFailed

__all__ = ["KillPoint", "run_killed"]

_ROOT = Path(__file__).parents[2]
_TIMEOUT = 300.0
_POLL = 0.005
_SPARK = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2")
# The Java of a command lives for seconds: compilation by the second compiler never pays.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+DisplayVMOutputToStderr"


@attrs.frozen
class KillPoint:
    """A point in the code of a command: a call of a function."""

    module: str
    owner: str
    """The class of a method; empty: a function."""
    name: str
    moment: str
    """before, after, or during."""
    argument: str | None = None
    """Only calls with this first argument."""
    nth: int = 1
    delay: float = 0.0
    process: str = "pipeline"
    """Only in processes that have this in their command line."""

    def __str__(self) -> str:
        call = f"{self.owner}.{self.name}".strip(".") + (f"({self.argument})" if self.argument else "")
        later = f" after {self.delay:.2f} s" if self.moment == "during" else ""
        return f"{self.moment} call {self.nth} of {call}{later}"


def run_killed(arguments: Sequence[str], dsn: str, point: KillPoint) -> bool:
    """Run `trioboss pipeline` with these arguments, and kill it at the point.

    Return False if the command ended without reaching it. A command that fails is an error.
    """
    with tempfile.TemporaryDirectory(prefix="kill-") as folder:
        reached, log = Path(folder, "reached"), Path(folder, "log")
        path = [str(Path(__file__).parents[1] / "programs" / "kill_points"), os.environ.get("PYTHONPATH")]
        environment = os.environ | {
            "TRIOBOSS_DSN": dsn,
            "KILL_POINT": json.dumps({**attrs.asdict(point), "reached": str(reached)}),
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "JDK_JAVA_OPTIONS": _JAVA,
        }
        command = [sys.executable, "-m", "trioboss", "pipeline", *arguments, *_SPARK]
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=output, stderr=output)
        try:
            _wait(process, reached)
        finally:
            _kill_family(process)
        if reached.exists():
            return True
        if process.returncode != 0:
            raise ProgramFailed(
                f"{arguments[0]}: exit code {process.returncode}\n{log.read_text('utf-8', 'replace')}"
            )
        return False


def _wait(process: subprocess.Popen[bytes], reached: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not reached.exists() and process.poll() is None:
        if time.monotonic() > deadline:
            raise ProgramFailed(f"a command neither ended nor reached its kill point within {_TIMEOUT:g} s")
        time.sleep(_POLL)


def _kill_family(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started: Java, and Spark's Python workers, which have groups of their own."""
    family = _family(process.pid)
    for pid in family:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
    while any(Path(f"/proc/{pid}/exe").exists() for pid in family):
        time.sleep(_POLL)


def _family(pid: int) -> set[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has just ended
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family
