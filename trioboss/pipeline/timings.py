"""Where the time of a job went (`--timings`)."""

import os
import sys
import time
from pathlib import Path

import attrs

from trioboss.pipeline.progress import Progress

__all__ = ["Timings"]

_STAT = Path("/proc/self/stat")
_UPTIME = Path("/proc/uptime")


@attrs.define
class Timings:
    """The steps of a job that are over, with the seconds that each took."""

    _began: float = attrs.field(factory=time.monotonic)
    _ended: list[tuple[str, float]] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        if (age := _process_age()) is not None:
            self._began -= age
            self._ended.append(("start Python, import", age))

    def add(self, progress: Progress) -> None:
        """Keep a step that is over."""
        if progress.is_over:
            self._ended.append((progress.what, progress.seconds))

    def print(self) -> None:
        """Print all steps, the time that belongs to none of them, and the sum."""
        total = time.monotonic() - self._began
        known = sum(seconds for _, seconds in self._ended)
        for name, seconds in [*self._ended, ("other", max(0.0, total - known)), ("all", total)]:
            print(f"{seconds:8.1f} s  {seconds / total:5.0%}  {name}", file=sys.stderr)


def _process_age() -> float | None:
    """How long this process has been running; None where the system does not have it."""
    try:
        # The name of the program comes in parentheses and may have spaces in it; field 22 is the start, in ticks.
        ticks = int(_STAT.read_text().rpartition(")")[2].split()[19])
        uptime = float(_UPTIME.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return uptime - ticks / os.sysconf("SC_CLK_TCK")
