"""What a job of Spark is doing, told now and then."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
from pyspark.sql import SparkSession

__all__ = ["Progress", "Reporter", "say", "watch_stages"]

_SECONDS_BETWEEN = 0.5


@attrs.frozen
class Progress:
    """How far a job is."""

    what: str
    """In a word or two: 'read', 'move files'."""
    done: int = 0
    total: int = 0
    """Tasks of the stages that are known so far; 0: there are none."""
    rows: int | None = None
    """How many rows that step had, once it is over."""
    seconds: float = 0.0

    @property
    def rate(self) -> float | None:
        """Rows a second."""
        return self.rows / self.seconds if self.rows is not None and self.seconds > 0 else None

    def __str__(self) -> str:
        parts = [self.what]
        if self.total:
            parts.append(f"{self.done}/{self.total} tasks")
        if self.rows is not None:
            parts.append(f"{self.rows:,} rows")
        if self.rate is not None:
            parts.append(f"{self.rate:,.0f} rows/s")
        return "  ".join([*parts, f"{self.seconds:.1f} s"])


Reporter = Callable[[Progress], None]


def say(report: Reporter | None, what: str, rows: int | None = None, seconds: float = 0.0) -> None:
    """Tell of a step that is over."""
    if report is not None:
        report(Progress(what, rows=rows, seconds=seconds))


@contextmanager
def watch_stages(spark: SparkSession, what: str, report: Reporter | None) -> Iterator[None]:
    """Tell, while a block runs, how many of its tasks are done."""
    if report is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(spark, what, report, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(spark: SparkSession, what: str, report: Reporter, over: threading.Event) -> None:
    tracker, began = spark.sparkContext.statusTracker(), time.monotonic()
    while not over.wait(_SECONDS_BETWEEN):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        done, total = sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)
        report(Progress(what, done, total, seconds=time.monotonic() - began))
