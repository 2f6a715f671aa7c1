"""How long do a report and an audit take, and does their cost grow faster than history?"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.progress import log
from benchmarks.harness.tables import Table
from benchmarks.pipelines.context import PipelineContext, timed
from trioboss.pipeline import Source, audit, report, synth

__all__ = ["measure_auditing", "measure_reporting"]

_Job = Callable[[Source, Path], object]


def measure_reporting(context: PipelineContext) -> Table:
    """Make a report over synthetic jobs in Parquet, and over ten times as many."""
    return _grow(context, "Report", lambda lake, out: report(lake, out, spark=context.spark))


def measure_auditing(context: PipelineContext) -> Table:
    """Audit the same jobs."""
    return _grow(context, "Audit", lambda lake, _: audit(lake, spark=context.spark))


def _grow(context: PipelineContext, name: str, job: _Job) -> Table:
    table = Table(f"{name} over a lake, on two cores", ("jobs", "s", "jobs/s"))
    _measure(context, 20_000, job)
    took = {jobs: _measure(context, jobs, job) for jobs in (context.rows, 10 * context.rows)}
    for jobs, seconds in took.items():
        table.add(jobs, seconds, round(jobs / seconds))
    growth = took[10 * context.rows] / took[context.rows]
    table.notes.append(f"ten times as many jobs take {growth:.1f} times as long")
    table.notes.append(
        "the lake is written by `trioboss pipeline synth` (seven days, six queues), which is not part of the time"
    )
    return table


def _measure(context: PipelineContext, jobs: int, job: _Job) -> float:
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder, "lake")
        made = timed(lambda: synth(jobs, lake, spark=context.spark))
        took = timed(lambda: job(Source(lake=lake), Path(folder, "out")))
    log(f"{jobs:,} jobs: written in {made:.1f} s, processed in {took:.1f} s")
    return took
