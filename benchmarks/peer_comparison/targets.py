"""The targets of trioboss: ratios to the best peer and to the floor of the same run, or plain values."""

from collections.abc import Iterator
from typing import Literal

import attrs

from benchmarks.harness.tables import Table, spell
from benchmarks.peer_comparison.catalogue import CATALOGUE
from benchmarks.peer_comparison.results import FLOOR, WorkloadResults
from benchmarks.peer_comparison.workloads import comparable_peers

__all__ = ["TARGETS", "Target", "TargetResult", "evaluate", "summarize_targets"]

_UNBATCHED, _LEAN = "trioboss", "trioboss-lean"
_BATCHED, _BATCHED_LEAN = "trioboss-batched", "trioboss-batched-lean"


@attrs.frozen
class Target:
    """A bound for one value of one configuration of trioboss; without a bound the value is only shown."""

    work: str
    workload: str
    ours: str
    key: str
    better: Literal["low", "high"]
    peer: float | None = None
    """A ratio to the best peer's value."""
    floor: float | None = None
    """A ratio to the floor's value."""
    value: float | None = None
    """A plain value."""

    def __str__(self) -> str:
        sign = "≤" if self.better == "low" else "≥"
        bounds = ((self.peer, "x peer"), (self.floor, "x floor"), (self.value, ""))
        return ", ".join(f"{sign} {bound:g}{unit}" for bound, unit in bounds if bound is not None)

    def is_met(self, found: float, bound: float) -> bool:
        """Whether a value satisfies a bound."""
        return found <= bound if self.better == "low" else found >= bound


TARGETS = (
    Target("idle latency p50, ms", "L1", _UNBATCHED, "p50", "low", peer=0.95, floor=1.3),
    Target("idle latency p99, ms", "L1", _UNBATCHED, "p99", "low"),
    Target("latency at 200 jobs/s p50, ms", "L2", _UNBATCHED, "p50", "low", peer=0.7),
    Target("latency at 200 jobs/s p99, ms", "L2", _UNBATCHED, "p99", "low", peer=0.7),
    Target("steady, jobs/s", "T4", _UNBATCHED, "handled", "high", peer=1.5),
    Target("steady, wait p50, ms", "T4", _UNBATCHED, "p50", "low"),
    Target("steady, batched, jobs/s", "T4", _BATCHED, "handled", "high", peer=1.5),
    Target("steady, batched, wait p50, ms", "T4", _BATCHED, "p50", "low"),
    Target("single sends/s, 1 at a time", "T1", _UNBATCHED, "rate_1", "high", peer=1.5),
    Target("single sends/s, 10 at a time", "T1", _UNBATCHED, "rate_10", "high", peer=1.5),
    Target("bulk sends/s", "T2", _UNBATCHED, "rate", "high", peer=2.0),
    Target("drain batched, nothing kept, jobs/s", "T3", _BATCHED_LEAN, "rate", "high", peer=1.0),
    Target("drain batched, history kept, jobs/s", "T3", _BATCHED, "rate", "high", peer=1.5),
    Target("drain unbatched, history kept, jobs/s", "T3", _UNBATCHED, "rate", "high", peer=1.5),
    Target("drain unbatched, nothing kept, jobs/s", "T3", _LEAN, "rate", "high", peer=1.5),
    Target("first 10,000 of a backlog, batched, to our drain", "T5", _BATCHED, "of_t3", "high", value=0.9),
    Target("the same, nothing kept", "T5", _BATCHED_LEAN, "of_t3", "high", value=0.9),
    Target("idle CPU s of a worker in 20 s", "I1", _UNBATCHED, "worker_cpu", "low", value=0.02),
    Target("idle statements a minute", "I1", _UNBATCHED, "statements", "low", value=4),
    Target("idle connections", "I1", _UNBATCHED, "connections", "low", value=3),
)


@attrs.frozen
class TargetResult:
    """A target, and the measured values."""

    target: Target
    ours: float
    best: str | None
    best_value: float | None
    floor_value: float | None
    is_noisy: bool = False
    """Whether the runs of trioboss or of the best peer were noisy: then the ratio must be measured again."""

    @property
    def to_peer(self) -> float | None:
        """Ours to the best peer's."""
        return self.ours / self.best_value if self.best_value else None

    @property
    def to_floor(self) -> float | None:
        """Ours to the floor's."""
        return self.ours / self.floor_value if self.floor_value else None

    @property
    def is_met(self) -> bool | None:
        """Whether all bounds hold; None if a value that they need was not measured."""
        found = (
            (self.to_peer, self.target.peer),
            (self.to_floor, self.target.floor),
            (self.ours, self.target.value),
        )
        bounds = [(value, bound) for value, bound in found if bound is not None]
        known = [self.target.is_met(value, bound) for value, bound in bounds if value is not None]
        if not all(known):
            return False
        return True if len(known) == len(bounds) else None


def evaluate(all_results: dict[str, WorkloadResults]) -> Iterator[TargetResult]:
    """Yield the result of each target that was measured."""
    for target in TARGETS:
        results = all_results.get(target.workload)
        if results is not None and (ours := results.median(target.ours, target.key)) is not None:
            best, best_value = _best_peer(results, target)
            noisy = results.is_noisy(target.ours) or (best is not None and results.is_noisy(best))
            yield TargetResult(target, ours, best, best_value, _floor(results, target), noisy)


def _best_peer(results: WorkloadResults, target: Target) -> tuple[str | None, float | None]:
    ours = next(peer for peer in CATALOGUE if peer.name == target.ours)
    names = [peer.name for peer in comparable_peers(ours, target.workload)]
    values = {name: value for name in names if (value := results.median(name, target.key)) is not None}
    if not values:
        return None, None
    best = (min if target.better == "low" else max)(values, key=values.__getitem__)
    return best, values[best]


def _floor(results: WorkloadResults, target: Target) -> float | None:
    ours = next(peer for peer in CATALOGUE if peer.name == target.ours)
    for floor in results.workload.floors:
        if floor.batched in (None, ours.batched):
            return results.median(FLOOR + floor.name, target.key)
    return None


def _met(result: TargetResult) -> str:
    text = {True: "yes", False: "no", None: "?"}[result.is_met]
    return f"{text} (noisy)" if result.is_noisy else text


def summarize_targets(all_results: dict[str, WorkloadResults]) -> Table:
    """Return the table of trioboss, the best peer and the floor, with ratios, targets and whether they are met."""
    columns = ("work", "trioboss", "best peer", "x peer", "floor", "x floor", "target", "met")
    table = Table("trioboss, the best peer, and the floor", columns)
    for each in evaluate(all_results):
        best = None if each.best_value is None else f"{spell(each.best_value)} ({each.best})"
        cells = (each.ours, best, each.to_peer, each.floor_value, each.to_floor, str(each.target))
        table.add(each.target.work, *cells, _met(each) if str(each.target) else None)
    table.notes.append("medians; the best peer is the best of those that were run and do comparable work")
    return table
