"""What trioboss is to reach, as ratios to the best peer and to the floor of the same run, or as plain values."""

from collections.abc import Iterator
from typing import Literal

import attrs

from benchmarks.adapters.catalogue import CATALOGUE
from benchmarks.adapters.contest import FLOOR, Contest
from benchmarks.adapters.workloads import rivals_of
from benchmarks.harness.tables import Table, spell

__all__ = ["AIMS", "Aim", "Verdict", "judge", "summarize_aims"]

_UNBATCHED, _LEAN = "trioboss", "trioboss-lean"
_BATCHED, _BATCHED_LEAN = "trioboss-batched", "trioboss-batched-lean"


@attrs.frozen
class Aim:
    """A bound for one value of one of our configurations; without a bound, it is only shown."""

    work: str
    workload: str
    ours: str
    key: str
    better: Literal["low", "high"]
    peer: float | None = None
    """At most, or at least, so many times the best peer's."""
    floor: float | None = None
    """So many times the floor's."""
    value: float | None = None
    """So much."""

    def __str__(self) -> str:
        sign = "≤" if self.better == "low" else "≥"
        bounds = ((self.peer, "x peer"), (self.floor, "x floor"), (self.value, ""))
        return ", ".join(f"{sign} {bound:g}{unit}" for bound, unit in bounds if bound is not None)

    def is_met(self, found: float, bound: float) -> bool:
        """Whether a value keeps to a bound."""
        return found <= bound if self.better == "low" else found >= bound


AIMS = (
    Aim("idle latency p50, ms", "L1", _UNBATCHED, "p50", "low", peer=0.7, floor=1.2),
    Aim("idle latency p99, ms", "L1", _UNBATCHED, "p99", "low", peer=0.7, floor=1.2),
    Aim("latency at 200 jobs/s p50, ms", "L2", _UNBATCHED, "p50", "low", peer=0.7),
    Aim("latency at 200 jobs/s p99, ms", "L2", _UNBATCHED, "p99", "low", peer=0.7),
    Aim("steady, jobs/s", "T4", _UNBATCHED, "handled", "high", peer=1.5),
    Aim("steady, wait p50, ms", "T4", _UNBATCHED, "p50", "low"),
    Aim("steady, batched, jobs/s", "T4", _BATCHED, "handled", "high", peer=1.5),
    Aim("steady, batched, wait p50, ms", "T4", _BATCHED, "p50", "low"),
    Aim("single sends/s, 1 at a time", "T1", _UNBATCHED, "rate_1", "high", peer=1.5),
    Aim("single sends/s, 10 at a time", "T1", _UNBATCHED, "rate_10", "high", peer=1.5),
    Aim("bulk sends/s", "T2", _UNBATCHED, "rate", "high", peer=1.5),
    Aim("drain batched, nothing kept, jobs/s", "T3", _BATCHED_LEAN, "rate", "high", peer=1.0),
    Aim("drain batched, history kept, jobs/s", "T3", _BATCHED, "rate", "high", peer=1.5),
    Aim("drain unbatched, history kept, jobs/s", "T3", _UNBATCHED, "rate", "high", peer=1.5),
    Aim("drain unbatched, nothing kept, jobs/s", "T3", _LEAN, "rate", "high", peer=1.5),
    Aim("first 10,000 of a backlog, batched, to our drain", "T5", _BATCHED, "of_t3", "high", value=0.9),
    Aim("the same, nothing kept", "T5", _BATCHED_LEAN, "of_t3", "high", value=0.9),
    Aim("idle CPU s of a worker in 20 s", "I1", _UNBATCHED, "worker_cpu", "low", value=0.02),
    Aim("idle statements a minute", "I1", _UNBATCHED, "statements", "low", value=4),
    Aim("idle connections", "I1", _UNBATCHED, "connections", "low", value=3),
)


@attrs.frozen
class Verdict:
    """How an aim stands."""

    aim: Aim
    ours: float
    best: str | None
    best_value: float | None
    floor_value: float | None
    is_noisy: bool = False
    """Whether ours or the best peer's was disturbed: then it has to be measured again."""

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
        """Whether all bounds hold; None if what they need was not measured."""
        found = ((self.to_peer, self.aim.peer), (self.to_floor, self.aim.floor), (self.ours, self.aim.value))
        asked = [(value, bound) for value, bound in found if bound is not None]
        known = [self.aim.is_met(value, bound) for value, bound in asked if value is not None]
        if not all(known):
            return False
        return True if len(known) == len(asked) else None


def judge(contests: dict[str, Contest]) -> Iterator[Verdict]:
    """How each aim stands that was measured."""
    for aim in AIMS:
        contest = contests.get(aim.workload)
        if contest is not None and (ours := contest.median(aim.ours, aim.key)) is not None:
            best, best_value = _best_peer(contest, aim)
            noisy = contest.is_noisy(aim.ours) or (best is not None and contest.is_noisy(best))
            yield Verdict(aim, ours, best, best_value, _floor(contest, aim), noisy)


def _best_peer(contest: Contest, aim: Aim) -> tuple[str | None, float | None]:
    ours = next(peer for peer in CATALOGUE if peer.name == aim.ours)
    names = [peer.name for peer in rivals_of(ours, aim.workload)]
    rivals = {name: value for name in names if (value := contest.median(name, aim.key)) is not None}
    if not rivals:
        return None, None
    best = (min if aim.better == "low" else max)(rivals, key=rivals.__getitem__)
    return best, rivals[best]


def _floor(contest: Contest, aim: Aim) -> float | None:
    ours = next(peer for peer in CATALOGUE if peer.name == aim.ours)
    for floor in contest.workload.floors:
        if floor.batched in (None, ours.batched):
            return contest.median(FLOOR + floor.name, aim.key)
    return None


def _in_words(verdict: Verdict) -> str:
    word = {True: "yes", False: "no", None: "?"}[verdict.is_met]
    return f"{word} (noisy)" if verdict.is_noisy else word


def summarize_aims(contests: dict[str, Contest]) -> Table:
    """The one table: ours, the best peer's, the floor's, their ratios, the aim, and whether it is met."""
    columns = ("work", "trioboss", "best peer", "x peer", "floor", "x floor", "aim", "met")
    table = Table("trioboss, the best peer, and the floor", columns)
    for each in judge(contests):
        best = None if each.best_value is None else f"{spell(each.best_value)} ({each.best})"
        cells = (each.ours, best, each.to_peer, each.floor_value, each.to_floor, str(each.aim))
        table.add(each.aim.work, *cells, _in_words(each) if str(each.aim) else None)
    table.notes.append("medians; the best peer is the best of those that were run and do the work alike")
    return table
