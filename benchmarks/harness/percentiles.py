"""Percentiles of latencies, free of coordinated omission.

A sender that is delayed sends late, and a latency counted from its late call hides the delay. In open-loop runs a
latency therefore counts from the time at which the job should have been sent. Timers of trio, asyncio and Node have a
resolution of a millisecond: a call that is late by at most `TIMER_SLACK` counts as on time, because the timer caused
that, not the queue.
"""

import math
from collections.abc import Iterable, Sequence

import attrs

__all__ = [
    "TIMER_SLACK",
    "Summary",
    "curve",
    "interval_of_median",
    "latencies",
    "median",
    "percentile",
    "summarize",
]

TIMER_SLACK = 0.002  # seconds

_SHARES = (0.5, 0.95, 0.99, 0.999)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed (nearest rank)."""
    if not ordered:
        raise ValueError("percentile: there are no values")
    # Rounded first: 0.55 * 100 is 55.00000000000001, which is rank 55 and not 56.
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def median(values: Iterable[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("median: there are no values")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def interval_of_median(values: Iterable[float]) -> tuple[float, float]:
    """Return the interval that has the median of what the values are samples of, with a probability of 95 %.

    Its ends are two of the values, whatever their distribution (the sign test). With fewer than six values it has all.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("median: there are no values")
    number, below, rank = len(ordered), 0.0, 0
    while (below := below + math.comb(number, rank) / 2**number) <= 0.025:
        rank += 1
    first = max(rank - 1, 0)
    return ordered[first], ordered[-1 - first]


@attrs.frozen
class Summary:
    """Percentiles of samples, in their unit."""

    count: int
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


def summarize(values: Iterable[float]) -> Summary:
    """Return the usual percentiles."""
    ordered = sorted(values)
    p50, p95, p99, p999 = (percentile(ordered, share) for share in _SHARES)
    return Summary(len(ordered), p50, p95, p99, p999, ordered[-1])


def latencies(
    arrived: Sequence[float], called: Sequence[float], due: Sequence[float], slack: float = TIMER_SLACK
) -> list[float]:
    """Return the seconds from the time at which each job should have been sent to its arrival.

    `called` is the time of the send, `due` the time planned for it. A due time of 0 means that no time was planned.
    """
    return [
        end - (begin if begin - planned <= slack or not planned else planned)
        for end, begin, planned in zip(arrived, called, due, strict=True)
    ]


def curve(values: Iterable[float]) -> list[tuple[float, float]]:
    """Return the points of a percentile curve, which are denser towards the largest values."""
    ordered = sorted(values)
    nines = math.log10(len(ordered)) if ordered else 0.0
    steps = max(2, round(nines * 20))
    shares = [1 - 10 ** -(nines * step / steps) for step in range(steps)]
    return [(share, percentile(ordered, share)) for share in shares] + [(1.0, ordered[-1])] if ordered else []
