"""How long does a report take, and does its cost grow with history and not faster?"""

import tempfile
from pathlib import Path

from benchmarks.harness.progress import say
from benchmarks.harness.tables import Table
from benchmarks.pipelines.setting import Setting, timed
from trioboss.pipeline import Source, audit, report, synth

__all__ = ["measure_reporting"]


def measure_reporting(setting: Setting) -> Table:
    """A report and an audit over so many synthetic jobs in Parquet, and over ten times as many."""
    table = Table(
        "Report and audit over a lake, on two cores",
        ("jobs", "report, s", "jobs/s", "audit, s", "jobs/s audited"),
    )
    took: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        _measure(setting, Path(folder, "warm"), 20_000)
        for jobs in (setting.rows, 10 * setting.rows):
            say(f"report over {jobs:,} jobs")
            took[jobs], audited = _measure(setting, Path(folder, str(jobs)), jobs)
            table.add(jobs, took[jobs], round(jobs / took[jobs]), audited, round(jobs / audited))
    growth = took[10 * setting.rows] / took[setting.rows]
    table.notes.append(f"Ten times as many jobs take {growth:.1f} times as long to report.")
    table.notes.append(
        "The lake is made by `trioboss pipeline synth`: seven days, six queues. Making it is not counted."
    )
    return table


def _measure(setting: Setting, folder: Path, jobs: int) -> tuple[float, float]:
    lake = Source(lake=folder / "lake")
    synth(jobs, folder / "lake", spark=setting.spark)
    reported = timed(lambda: report(lake, folder / "report", spark=setting.spark))
    audited = timed(lambda: audit(lake, spark=setting.spark))
    return reported, audited
