"""Percentiles of latencies, free of coordinated omission.

A sender that is held up sends late, and a latency counted from its late call hides the hold-up. So in open-loop
runs a latency counts from the time when the job should have been sent. Timers of trio, asyncio and Node tick in
milliseconds: a call that is late by no more than `TIMER_SLACK` is taken for on time, because that lateness is the
timer's and not the queue's.
"""

import math
from collections.abc import Iterable, Sequence

import attrs

__all__ = ["TIMER_SLACK", "Summary", "curve", "latencies", "median", "percentile", "summarize"]

TIMER_SLACK = 0.002  # seconds

_SHARES = (0.5, 0.95, 0.99, 0.999)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by at least this share of the values (nearest rank)."""
    if not ordered:
        raise ValueError("percentile: there are no values")
    # Rounded first: 0.55 * 100 is 55.00000000000001, which is rank 55 and not 56.
    rank = math.ceil(round(share * len(ordered), 9))
    return ordered[min(max(rank, 1), len(ordered)) - 1]


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("median: there are no values")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@attrs.frozen
class Summary:
    """What became of so many samples, in their unit."""

    count: int
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


def summarize(values: Iterable[float]) -> Summary:
    """The percentiles that people ask for."""
    ordered = sorted(values)
    p50, p95, p99, p999 = (percentile(ordered, share) for share in _SHARES)
    return Summary(len(ordered), p50, p95, p99, p999, ordered[-1])


def latencies(
    arrived: Sequence[float], called: Sequence[float], due: Sequence[float], slack: float = TIMER_SLACK
) -> list[float]:
    """Seconds from when each job should have been sent until it arrived.

    `called` is when it was sent, `due` when it should have been. A due time of 0 means: whenever it was called.
    """
    return [
        end - (begin if begin - planned <= slack or not planned else planned)
        for end, begin, planned in zip(arrived, called, due, strict=True)
    ]


def curve(values: Iterable[float]) -> list[tuple[float, float]]:
    """The points of a percentile curve: dense at the end, as far as there are samples to tell."""
    ordered = sorted(values)
    nines = math.log10(len(ordered)) if ordered else 0.0
    steps = max(2, round(nines * 20))
    shares = [1 - 10 ** -(nines * step / steps) for step in range(steps)]
    return [(share, percentile(ordered, share)) for share in shares] + [(1.0, ordered[-1])] if ordered else []
