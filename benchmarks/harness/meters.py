"""CPU time of our programs, of Postgres and of all other processes of the machine, from Linux's /proc.

On other systems, and for a server on another machine, the results are None or 0, and tables leave them out.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

__all__ = [
    "NOISY",
    "Meter",
    "children_of",
    "cpu_of",
    "cpu_with_reaped",
    "machine_cpu",
    "resident_of",
    "tree_cpu",
    "wakeups_of",
]

NOISY = 0.3  # cores used by other processes, on average; a run with more than that is marked as noisy

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def _tasks(pid: int) -> list[Path]:
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a living process, all threads, to the nanosecond."""
    total = 0
    for task in _tasks(pid):
        with contextlib.suppress(OSError, IndexError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _reaped_by(pid: int) -> float:
    """Return the CPU seconds of the children that a process has waited for, to the clock tick."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / _TICKS


def cpu_with_reaped(pid: int) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for."""
    return cpu_of(pid) + _reaped_by(pid)


def children_of(pid: int) -> list[int]:
    """Return the living children of a process."""
    found: list[int] = []
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and all its descendants, ended ones included."""
    return cpu_with_reaped(pid) + sum(tree_cpu(child) for child in children_of(pid))


def machine_cpu() -> float:
    """Return the CPU seconds that were not idle, over all cores."""
    try:
        fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0.0
    return (sum(fields[:8]) - fields[3] - fields[4]) / _TICKS


def wakeups_of(pid: int) -> int:
    """Return the voluntary context switches of a process, all threads: how often it was woken."""
    total = 0
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
    return total


def resident_of(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
    return 0


@attrs.define(eq=False)
class Meter:
    """Measures a block: wall time, CPU of Postgres, CPU of our programs, and the noise of other processes.

    `ours` returns the CPU seconds that our programs have used so far. Without it, all programs that this process has
    started are ours. This process itself is never counted as noise.
    """

    postmaster: int | None
    ours: Callable[[], float] | None = None
    seconds: float = attrs.field(default=0.0, init=False)
    postgres: float = attrs.field(default=0.0, init=False)
    programs: float = attrs.field(default=0.0, init=False)
    _all: float = attrs.field(default=0.0, init=False)
    _self: float = attrs.field(default=0.0, init=False)
    _start: tuple[float, ...] = attrs.field(default=(), init=False)

    def _read(self) -> tuple[float, ...]:
        postgres = 0.0 if self.postmaster is None else tree_cpu(self.postmaster)
        ours = self._children() if self.ours is None else self.ours()
        return (time.monotonic(), postgres, ours, machine_cpu(), cpu_of(os.getpid()))

    def _children(self) -> float:
        living = (tree_cpu(child) for child in children_of(os.getpid()) if child != self.postmaster)
        return sum(living) + _reaped_by(os.getpid())

    def __enter__(self) -> Self:
        self._start = self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.seconds == 0.0:
            self.stop()

    def stop(self) -> None:
        """Take the final readings now instead of at the end of the block."""
        spent = [end - start for end, start in zip(self._read(), self._start, strict=True)]
        self.seconds, self.postgres, self.programs, self._all, self._self = spent

    @property
    def noise(self) -> float:
        """The cores that other processes used, on average."""
        others = self._all - self.postgres - self.programs - self._self
        return max(0.0, others / self.seconds) if self.seconds else 0.0
