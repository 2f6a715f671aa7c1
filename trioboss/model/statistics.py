"""Statistics of a queue over time, and warnings that were kept."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_duration, check_instant

__all__ = [
    "BOUNDS",
    "KeptWarning",
    "QueueSample",
    "Row",
    "check_period",
    "floor_time",
    "percentile",
    "summarize",
]

BOUNDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0)
"""The bounds of histograms, in seconds. The last of the thirteen buckets has no upper bound."""

_EMPTY: Final = (0,) * (len(BOUNDS) + 1)


@attrs.frozen
class QueueSample:
    """A queue during one period. Maintenance takes samples all the time, and keeps them for a day, by the minute."""

    start: datetime
    deferred: int
    """Jobs that waited for their time at the end of the period. These four are counted up to 100,000."""
    waiting: int
    """Jobs that waited behind others: of their key, or for a limit."""
    ready: int
    """Jobs that could run."""
    active: int
    """Jobs that ran."""
    arrived: int = 0
    """Jobs sent during the period, by the time in their ids: own ids that are no UUIDv7 are not counted."""
    completed: int = 0
    failed: int = 0
    """Attempts that failed, expired, or lost their worker."""
    waits: tuple[int, ...] = _EMPTY
    """Completed jobs by how long they waited from the time when they were due: a count for each bucket of BOUNDS."""
    runs: tuple[int, ...] = _EMPTY
    """Completed jobs by how long they ran."""

    @property
    def wait_p50(self) -> float | None:
        """Seconds within which half of the completed jobs had started; None without jobs."""
        return percentile(self.waits, 0.5)

    @property
    def wait_p95(self) -> float | None:
        """Seconds within which 95 % of the completed jobs had started."""
        return percentile(self.waits, 0.95)

    @property
    def run_p95(self) -> float | None:
        """Seconds within which 95 % of the completed jobs had ended, from their start."""
        return percentile(self.runs, 0.95)


@attrs.frozen
class KeptWarning:
    """A warning of maintenance. One that comes back every minute is kept once, with the time of its last return."""

    id: UUID
    queue: str | None
    kind: str
    message: str
    first_on: datetime
    last_on: datetime
    count: int


def percentile(histogram: Sequence[int], share: float) -> float | None:
    """A percentile of a histogram of BOUNDS, linear within a bucket; None if it is empty."""
    total = sum(histogram)
    if not total:
        return None
    rank, below = share * total, 0
    for bucket, count in enumerate(histogram):
        # Empty buckets are passed over: a rank on the border belongs to the bucket that has its job.
        if count and below + count >= rank:
            low = BOUNDS[bucket - 1] if bucket else 0.0
            high = BOUNDS[bucket] if bucket < len(BOUNDS) else low
            return low + (high - low) * (rank - below) / count
        below += count
    return BOUNDS[-1]


def check_period(
    since: object, until: object, bucket: object, now: datetime
) -> tuple[datetime, datetime, timedelta]:
    """The arguments of `get_queue_stats_history`, checked: the last hour by the minute, if nothing else is given."""
    end = now if until is None else check_instant("until", until)
    start = end - timedelta(hours=1) if since is None else check_instant("since", since)
    seconds = 60.0 if bucket is None else check_duration("bucket", bucket)
    if seconds < 60 or seconds % 60:
        raise UsageError(f"bucket: {seconds:g} s are not a number of minutes")
    if start >= end:
        raise UsageError("since: is not before until")
    if (end - start).total_seconds() / seconds > 10_000:
        raise UsageError("bucket: there would be more than 10,000 of them: use a longer one")
    first = floor_time(start, timedelta(seconds=seconds))
    return first, end, timedelta(seconds=seconds)


def floor_time(instant: datetime, bucket: timedelta) -> datetime:
    """The beginning of the bucket that an instant is in; buckets are counted from midnight UTC of the first of 1970."""
    seconds = bucket.total_seconds()
    return datetime.fromtimestamp(instant.timestamp() // seconds * seconds, UTC)


Row = tuple[
    datetime,
    int | None,
    int | None,
    int | None,
    int | None,
    int,
    int,
    int,
    Sequence[int] | None,
    Sequence[int] | None,
]
"""A row of get_samples.sql: the minute, four gauges, three counts, two histograms."""


def summarize(rows: Iterable[Row], first: datetime, until: datetime, bucket: timedelta) -> list[QueueSample]:
    """Samples of whole periods from those of minutes. A period without a sample has the jobs of the one before it."""
    buckets: dict[datetime, list[Row]] = {}
    gauges = (0, 0, 0, 0)
    for row in rows:
        # The last sample before the period: how many jobs there were when it began.
        if row[0] < first:
            gauges = _gauges(row, gauges)
        else:
            buckets.setdefault(floor_time(row[0], bucket), []).append(row)
    summary = []
    start = first
    while start < until:
        inside = buckets.get(start, [])
        for row in inside:
            gauges = _gauges(row, gauges)
        arrived = sum(row[5] for row in inside)
        completed = sum(row[6] for row in inside)
        failed = sum(row[7] for row in inside)
        waits = _sum_histograms(row[8] for row in inside)
        runs = _sum_histograms(row[9] for row in inside)
        summary.append(QueueSample(start, *gauges, arrived, completed, failed, waits, runs))
        start += bucket
    return summary


def _gauges(row: Row, before: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    # A minute in which nothing was counted is like the one before it.
    if row[4] is None:
        return before
    return row[1] or 0, row[2] or 0, row[3] or 0, row[4]


def _sum_histograms(histograms: Iterable[Sequence[int] | None]) -> tuple[int, ...]:
    # A worker of another version may have written counts for other bounds: their number differs.
    known = [histogram[: len(_EMPTY)] for histogram in histograms if histogram]
    return tuple(map(sum, zip_longest(_EMPTY, *known, fillvalue=0)))
