"""Expressions of time that the questions share."""

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = [
    "PERCENTILES",
    "add_seconds",
    "hour_of",
    "hours_between",
    "percentiles",
    "seconds_between",
    "spread",
]

PERCENTILES = (50, 95, 99)

_ACCURACY = 10_000
"""The rank of a percentile is off by at most one in so many."""


def seconds_between(begin: Column | str, end: Column | str) -> Column:
    """How many seconds from one instant to another; never negative, whatever clocks did."""
    return F.greatest((F.unix_micros(_column(end)) - F.unix_micros(_column(begin))) / 1e6, F.lit(0.0))


def add_seconds(instant: Column | str, seconds: float) -> Column:
    """An instant, so much later."""
    return F.timestamp_micros(F.unix_micros(_column(instant)) + F.lit(round(seconds * 1e6)))


def hour_of(instant: Column | str) -> Column:
    """The beginning of the hour in which the instant is."""
    return F.date_trunc("hour", _column(instant))


def hours_between(begin: Column | str, end: Column | str) -> Column:
    """The hours that a span of time touches, as an array."""
    first, last = hour_of(begin), hour_of(end)
    # Most spans are within an hour, and a sequence of timestamps is slow to make.
    return F.when(first >= last, F.array(last)).otherwise(F.sequence(first, last, F.expr("interval 1 hour")))


def percentiles(value: Column, prefix: str) -> Column:
    """The aggregate `prefix`: the 50th, 95th and 99th percentile as an array, each a value that occurred."""
    shares = F.array(*(F.lit(p / 100) for p in PERCENTILES))
    return F.percentile_approx(value, shares, _ACCURACY).alias(prefix)


def spread(prefix: str) -> list[Column]:
    """The array as columns `prefix_p50`, `prefix_p95` and `prefix_p99`."""
    return [F.col(prefix)[place].alias(f"{prefix}_p{p}") for place, p in enumerate(PERCENTILES)]


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given
