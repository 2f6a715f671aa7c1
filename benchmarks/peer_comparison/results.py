"""The runs of one workload, by queue: added run by run, stored as JSON, and read again by --append."""

from typing import Any

import attrs

from benchmarks.harness.meters import NOISY
from benchmarks.harness.percentiles import median
from benchmarks.harness.progress import log
from benchmarks.harness.tables import Spread
from benchmarks.peer_comparison.workloads import ALL, Metric, Workload

__all__ = ["FLOOR", "WorkloadResults", "read_results", "relate_to_drain"]

FLOOR = "floor: "

Result = dict[str, Any]


@attrs.define
class WorkloadResults:
    """The runs of one workload. Floors are among the queues, with the prefix `FLOOR`."""

    workload: Workload
    runs: dict[str, list[Result]] = attrs.field(factory=dict)
    failures: dict[str, str] = attrs.field(factory=dict)
    versions: dict[str, str] = attrs.field(factory=dict)
    discarded: int = 0

    def add(self, name: str, result: Result) -> None:
        """Add a run."""
        self.runs.setdefault(name, []).append(result)

    def fail(self, name: str, error: Exception) -> None:
        """Add a run that failed."""
        text = str(error) or repr(error)
        self.failures[name] = text.splitlines()[0][:200]
        log(f"{self.workload.name} {name} failed: {text[:1000]}")

    def counted(self, name: str) -> list[Result]:
        """Return the runs of a queue that were not noisy; all of them if each was."""
        runs = self.runs.get(name, [])
        return [run for run in runs if run.get("noise", 0.0) <= NOISY] or runs

    @property
    def left_out(self) -> int:
        """How many runs do not count, because the same queue has quieter ones."""
        return sum(len(runs) - len(self.counted(name)) for name, runs in self.runs.items())

    def is_noisy(self, name: str) -> bool:
        """Whether the runs that count were noisy."""
        return any(run.get("noise", 0.0) > NOISY for run in self.counted(name))

    def values(self, name: str, key: str) -> list[float]:
        """Return the known values of the runs that count."""
        return [result[key] for result in self.counted(name) if result.get(key) is not None]

    def median(self, name: str, key: str) -> float | None:
        """Return the median of these values."""
        values = self.values(name, key)
        return median(values) if values else None

    def spread(self, name: str, metric: Metric) -> Spread | None:
        """Return their median and range."""
        values = self.values(name, metric.key)
        return Spread.of(values) if values else None

    def as_json(self) -> dict[str, Any]:
        """Return the runs for the raw file."""
        return {
            "runs": self.runs,
            "failures": self.failures,
            "versions": self.versions,
            "discarded": self.discarded,
        }


def read_results(measures: dict[str, Any]) -> dict[str, WorkloadResults]:
    """Return the results of an earlier raw file."""
    return {name: WorkloadResults(ALL[name], **found) for name, found in measures.items() if name in ALL}


def relate_to_drain(all_results: dict[str, WorkloadResults]) -> None:
    """Add to each run of T5 its ratio to the same queue's drain without a backlog."""
    backlog, drained = all_results.get("T5"), all_results.get("T3")
    if backlog is None or drained is None:
        return
    for name, runs in backlog.runs.items():
        base = drained.median(name, "entry_rate")
        for result in runs:
            result["of_t3"] = result["entry_rate"] / base if base else None
