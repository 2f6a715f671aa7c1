"""Reports how far a job of Spark is."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
from pyspark.sql import SparkSession

__all__ = ["Progress", "Reporter", "report_stages", "report_step"]

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

    @property
    def rate(self) -> float | None:
        """Rows a second."""
        return self.rows / self.seconds if self.rows and self.seconds > 0 else None

    def __str__(self) -> str:
        parts = [self.what]
        if self.total:
            parts.append(f"{self.done}/{self.total} tasks")
        if self.rows:
            parts.append(f"{self.rows:,} rows")
        if self.rate is not None:
            parts.append(f"{self.rate:,.0f} rows/s")
        if self.seconds:
            parts.append(f"{self.seconds:.1f} s")
        return "  ".join(parts)


Reporter = Callable[[Progress], None]


def report_step(report: Reporter | None, what: str, rows: int | None = None, seconds: float = 0.0) -> None:
    """Report a step that is over."""
    if report is not None:
        report(Progress(what, rows=rows, seconds=seconds))


@contextmanager
def report_stages(spark: SparkSession, what: str, report: Reporter | None) -> Iterator[None]:
    """Report, while a block runs, how many of its tasks are done."""
    if report is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_report_until, args=(spark, what, report, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _report_until(spark: SparkSession, what: str, report: Reporter, over: threading.Event) -> None:
    tracker, began = spark.sparkContext.statusTracker(), time.monotonic()
    while not over.wait(_SECONDS_BETWEEN):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        done, total = sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)
        report(Progress(what, done, total, seconds=time.monotonic() - began))
