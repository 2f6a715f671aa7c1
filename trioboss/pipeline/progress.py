"""Reports how far a job of Spark is."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
from pyspark import StatusTracker
from pyspark.sql import SparkSession

from trioboss.pipeline.remote import is_remote

__all__ = ["Progress", "Reporter", "report_end", "report_stages"]

_SECONDS_BETWEEN = 0.5


@attrs.frozen
class Progress:
    """How far a job is."""

    what: str
    """The step, in a word or two: 'read', 'move files'."""
    done: int = 0
    total: int = 0
    """Tasks of the stages that are known so far; 0: there are none."""
    rows: int | None = None
    """How many rows the step had, once it is over."""
    seconds: float = 0.0
    expected: int | None = None
    """About how many rows the step will have, if that is known."""

    @property
    def is_over(self) -> bool:
        """Whether the step is over."""
        return self.rows is not None

    @property
    def rows_so_far(self) -> int | None:
        """The rows of the step until now: estimated from its tasks while it is not over."""
        if self.rows is not None or not self.expected or not self.total:
            return self.rows
        return self.expected * self.done // self.total

    @property
    def rate(self) -> float | None:
        """Rows a second."""
        return self.rows_so_far / self.seconds if self.rows_so_far and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """How long the step will go on, at the present rate; None: not known."""
        if self.is_over or self.rate is None or self.expected is None:
            return None
        return (self.expected - (self.rows_so_far or 0)) / self.rate

    def __str__(self) -> str:
        parts = [self.what]
        if self.total:
            parts.append(f"{self.done}/{self.total} tasks")
        if self.rows:
            parts.append(f"{self.rows:,} rows")
        elif not self.is_over and self.expected:
            parts.append(f"about {self.rows_so_far or 0:,} of {self.expected:,} rows")
        if self.rate is not None:
            parts.append(f"{self.rate:,.0f} rows/s")
        if self.seconds:
            parts.append(f"{self.seconds:.1f} s")
        if self.seconds_left is not None:
            parts.append(f"{self.seconds_left:.0f} s left")
        return "  ".join(parts)


Reporter = Callable[[Progress], None]


def report_end(report: Reporter | None, what: str, rows: int = 0, seconds: float = 0.0) -> None:
    """Report a step that is over."""
    if report is not None:
        report(Progress(what, rows=rows, seconds=seconds))


@contextmanager
def report_stages(
    spark: SparkSession, what: str, report: Reporter | None, expected: int | None = None
) -> Iterator[None]:
    """Report, while a block runs, how many of its tasks are done, of a step with about so many rows."""
    tracker = None if report is None else _find_tracker(spark)
    if report is None or tracker is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_report_until, args=(tracker, what, report, over, expected), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _find_tracker(spark: SparkSession) -> StatusTracker | None:
    """None for a session of Spark Connect, which has no context here."""
    return None if is_remote(spark) else spark.sparkContext.statusTracker()


def _report_until(
    tracker: StatusTracker, what: str, report: Reporter, over: threading.Event, expected: int | None
) -> None:
    began = time.monotonic()
    while not over.wait(_SECONDS_BETWEEN):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        done, total = sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)
        report(Progress(what, done, total, seconds=time.monotonic() - began, expected=expected))
