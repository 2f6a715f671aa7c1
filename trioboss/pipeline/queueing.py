"""How long work waits for a slot: a queue with Poisson-like arrivals, any run times, and several slots (M/G/c).

The wait of M/M/c is known (Erlang's C formula); Allen and Cunneen's approximation scales it by how irregular arrivals
and run times are. The wait of jobs that wait at all is taken as exponential, which gives percentiles.
"""

import heapq
from collections.abc import Iterable, Sequence
from math import ceil, inf, log

import attrs

__all__ = ["Demand", "Work", "percentile", "replay", "slots_needed", "wait_percentile"]

_MOST = 100_000


@attrs.frozen
class Demand:
    """Arrivals and run times. The variations are squared coefficients: 1 for Poisson and exponential."""

    rate: float
    """Arrivals a second."""
    run: float
    """The mean run, in seconds."""
    run_variation: float = 1.0
    arrival_variation: float = 1.0

    @property
    def load(self) -> float:
        """How many slots are busy on average."""
        return self.rate * self.run


def erlang_c(slots: int, load: float) -> float:
    """The share of arrivals that find all slots busy."""
    if load >= slots:
        return 1.0
    blocked = 1.0
    for n in range(1, slots + 1):
        blocked = load * blocked / (n + load * blocked)
    return slots * blocked / (slots - load * (1 - blocked))


def wait_percentile(demand: Demand, slots: int, share: float) -> float:
    """The wait in seconds that so large a share of arrivals does not exceed; endless if there are too few slots."""
    if demand.load >= slots:
        return inf
    waiting = erlang_c(slots, demand.load)
    if waiting <= 1 - share:
        return 0.0
    variation = (demand.arrival_variation + demand.run_variation) / 2
    mean_of_those = variation * demand.run / (slots - demand.load)
    return mean_of_those * log(waiting / (1 - share))


def slots_needed(demand: Demand, target: float, share: float) -> int:
    """The fewest slots with which so large a share of arrivals waits no longer than the target."""
    slots = max(1, ceil(demand.load))
    while wait_percentile(demand, slots, share) > target and slots < _MOST:
        slots += 1
    return slots


@attrs.frozen
class Work:
    """One attempt: when it could start, how long it ran, and the key that it had to wait for, if any."""

    due: float
    run: float
    key: str | None = None


def replay(work: Iterable[Work], slots: int) -> list[float]:
    """The waits, had the same work met so many slots; first come, first served, and one at a time for each key."""
    free = [0.0] * slots
    keys: dict[str, float] = {}
    waits = []
    for item in sorted(work, key=lambda item: item.due):
        start = max(item.due, free[0], keys.get(item.key, 0.0) if item.key is not None else 0.0)
        heapq.heapreplace(free, start + item.run)
        if item.key is not None:
            keys[item.key] = start + item.run
        waits.append(start - item.due)
    return waits


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so large a share does not exceed; 0 if there is none."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered) - 1e-9) - 1)] if ordered else 0.0
