"""Expressions of time that the transforms share. All hours are hours in UTC, whatever the session's time zone is."""

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = [
    "MOST_HOURS",
    "PERCENTILES",
    "add_seconds",
    "due_on",
    "hour_of",
    "hours_between",
    "percentiles",
    "seconds_between",
    "spread",
]

PERCENTILES = (50, 95, 99)
MOST_HOURS = 24 * 31
"""The most hours among which one job or attempt is counted: the last month of it."""

_ACCURACY = 10_000
"""The rank of a percentile is off by at most one in so many."""
_HOUR = 3600


def seconds_between(begin: Column | str, end: Column | str) -> Column:
    """How many seconds from one instant to another; never negative, even if a clock was set back."""
    return F.greatest((F.unix_micros(_column(end)) - F.unix_micros(_column(begin))) / 1e6, F.lit(0.0))


def add_seconds(instant: Column | str, seconds: float) -> Column:
    """An instant, so much later."""
    return F.timestamp_micros(F.unix_micros(_column(instant)) + F.lit(round(seconds * 1e6)))


def due_on() -> Column:
    """When a job could start: at its start_after, which may be long past, but not before it was sent."""
    return F.greatest("start_after", "created_on")


def hour_of(instant: Column | str) -> Column:
    """The beginning of the hour of an instant."""
    return F.timestamp_seconds(F.floor(F.unix_seconds(_column(instant)) / _HOUR) * _HOUR)


def hours_between(begin: Column | str, end: Column | str) -> Column:
    """The hours that a span of time touches, as an array; of a very long span the last ones."""
    first, last = (F.floor(F.unix_seconds(_column(instant)) / _HOUR) for instant in (begin, end))
    first = F.greatest(first, last - (MOST_HOURS - 1))
    hours = F.transform(F.sequence(first, last), lambda hour: F.timestamp_seconds(hour * _HOUR))
    # Most spans are within one hour, and a sequence is slow to make.
    return F.when(first >= last, F.array(F.timestamp_seconds(last * _HOUR))).otherwise(hours)


def percentiles(value: Column, prefix: str) -> Column:
    """The aggregate `prefix`: the 50th, 95th and 99th percentile as an array, each a value that occurred."""
    shares = F.array(*(F.lit(p / 100) for p in PERCENTILES))
    return F.percentile_approx(value, shares, _ACCURACY).alias(prefix)


def spread(prefix: str) -> list[Column]:
    """The array as columns `prefix_p50`, `prefix_p95` and `prefix_p99`."""
    return [F.col(prefix)[place].alias(f"{prefix}_p{p}") for place, p in enumerate(PERCENTILES)]


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given
