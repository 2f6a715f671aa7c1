"""What the queues and the floor did in one workload: added run by run, kept as JSON, read back to be added to."""

from typing import Any

import attrs

from benchmarks.adapters.workloads import ALL, Metric, Workload
from benchmarks.harness.meters import NOISY
from benchmarks.harness.percentiles import median
from benchmarks.harness.progress import say
from benchmarks.harness.tables import Spread

__all__ = ["FLOOR", "Contest", "read_contests", "relate_to_drain"]

FLOOR = "floor: "

Result = dict[str, Any]


@attrs.define
class Contest:
    """The runs of one workload, by the name of the queue."""

    workload: Workload
    results: dict[str, list[Result]] = attrs.field(factory=dict)
    failures: dict[str, str] = attrs.field(factory=dict)
    versions: dict[str, str] = attrs.field(factory=dict)
    discarded: int = 0

    def add(self, name: str, result: Result) -> None:
        """Note a run."""
        self.results.setdefault(name, []).append(result)

    def fail(self, name: str, error: Exception) -> None:
        """Note a run that failed."""
        text = str(error) or repr(error)
        self.failures[name] = text.splitlines()[0][:200]
        say(f"{self.workload.name} {name} failed: {text[:1000]}")

    def counted(self, name: str) -> list[Result]:
        """The runs of a queue that were not disturbed; all of them if each was."""
        runs = self.results.get(name, [])
        return [run for run in runs if run.get("noise", 0.0) <= NOISY] or runs

    @property
    def left_out(self) -> int:
        """How many runs do not count because the same queue had quieter ones."""
        return sum(len(runs) - len(self.counted(name)) for name, runs in self.results.items())

    def is_noisy(self, name: str) -> bool:
        """Whether even the runs that count were disturbed."""
        return any(run.get("noise", 0.0) > NOISY for run in self.counted(name))

    def values(self, name: str, key: str) -> list[float]:
        """What the runs of a queue that count gave, where they gave something."""
        return [result[key] for result in self.counted(name) if result.get(key) is not None]

    def median(self, name: str, key: str) -> float | None:
        """The middle one of these values."""
        values = self.values(name, key)
        return median(values) if values else None

    def spread(self, name: str, metric: Metric) -> Spread | None:
        """The same with its range."""
        values = self.values(name, metric.key)
        return Spread.of(values) if values else None

    def as_json(self) -> dict[str, Any]:
        """For the file of results."""
        return {
            "results": self.results,
            "failures": self.failures,
            "versions": self.versions,
            "discarded": self.discarded,
        }


def read_contests(measures: dict[str, Any]) -> dict[str, Contest]:
    """The contests of an earlier file of results."""
    return {name: Contest(ALL[name], **found) for name, found in measures.items() if name in ALL}


def relate_to_drain(contests: dict[str, Contest]) -> None:
    """Give each run with a backlog its ratio to the drain without one."""
    backlog, drained = contests.get("T5"), contests.get("T3")
    if backlog is None or drained is None:
        return
    for name, results in backlog.results.items():
        base = drained.median(name, "entry_rate")
        for result in results:
            result["of_t3"] = result["entry_rate"] / base if base else None
