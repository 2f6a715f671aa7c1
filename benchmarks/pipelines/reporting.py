"""How long do a report and an audit take, and does their cost grow with history and not faster?"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.progress import say
from benchmarks.harness.tables import Table
from benchmarks.pipelines.setting import Setting, timed
from trioboss.pipeline import Source, audit, report, synth

__all__ = ["measure_auditing", "measure_reporting"]

_Job = Callable[[Source, Path], object]


def measure_reporting(setting: Setting) -> Table:
    """A report over so many synthetic jobs in Parquet, and over ten times as many."""
    return _grow(setting, "Report", lambda lake, out: report(lake, out, spark=setting.spark))


def measure_auditing(setting: Setting) -> Table:
    """An audit over the same."""
    return _grow(setting, "Audit", lambda lake, _: audit(lake, spark=setting.spark))


def _grow(setting: Setting, name: str, job: _Job) -> Table:
    table = Table(f"{name} over a lake, on two cores", ("jobs", "s", "jobs/s"))
    _measure(setting, 20_000, job)
    took = {jobs: _measure(setting, jobs, job) for jobs in (setting.rows, 10 * setting.rows)}
    for jobs, seconds in took.items():
        table.add(jobs, seconds, round(jobs / seconds))
    growth = took[10 * setting.rows] / took[setting.rows]
    table.notes.append(f"Ten times as many jobs take {growth:.1f} times as long.")
    table.notes.append(
        "The lake is made by `trioboss pipeline synth`: seven days, six queues. Making it is not counted."
    )
    return table


def _measure(setting: Setting, jobs: int, job: _Job) -> float:
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder, "lake")
        made = timed(lambda: synth(jobs, lake, spark=setting.spark))
        took = timed(lambda: job(Source(lake=lake), Path(folder, "out")))
    say(f"{jobs:,} jobs: made in {made:.1f} s, done in {took:.1f} s")
    return took
