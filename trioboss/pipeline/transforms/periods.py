"""Hours drawn together, where there are more of them than a chart has room for."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["choose_period", "in_periods"]

_HOURS = (1, 2, 3, 6, 12, 24, 48, 168, 336, 720)


def choose_period(first: datetime | None, last: datetime | None, points: int) -> timedelta:
    """The shortest period of which no more than so many fit between the two."""
    hours = (last - first) / timedelta(hours=1) if first is not None and last is not None else 0
    return timedelta(hours=next((n for n in _HOURS if hours / n < points), _HOURS[-1]))


def in_periods(hours: DataFrame, period: timedelta) -> DataFrame:
    """For each queue and period: sums of what was counted, and the worst hour of what was measured."""
    seconds = int(period.total_seconds())
    time = F.timestamp_seconds(F.floor(F.unix_seconds("hour") / seconds) * seconds).alias("time")
    summed = ("arrivals", "completions", "failures", "cancellations", "retries", "releases", "worker_seconds")
    measured = [name for name in hours.columns if name not in (*summed, "queue", "hour", "utilisation")]
    return hours.groupBy("queue", time).agg(
        *(F.sum(name).alias(name) for name in summed),
        *(F.max(name).alias(name) for name in measured),
        (F.sum("utilisation") * 3600 / seconds).alias("utilisation"),
    )
