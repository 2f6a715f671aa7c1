"""How long do a report and an audit take, does their cost grow faster than history, and what did they cost before?"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.comparing.checkout import THIS_ROOT, Checkout, open_checkout
from benchmarks.harness.percentiles import median
from benchmarks.harness.processes import ProgramFailed, python_module, run_program
from benchmarks.harness.progress import log
from benchmarks.harness.tables import Spread, Table
from benchmarks.pipelines.context import PipelineContext, timed
from trioboss.pipeline import Source, audit, report, synth

__all__ = ["measure_auditing", "measure_base", "measure_reporting"]

_PROGRAM = "benchmarks.programs.reported"
_TIMEOUT = 1800.0

_Job = Callable[[Source, Path], object]


def measure_reporting(context: PipelineContext) -> Table:
    """Make a report over synthetic jobs in Parquet, and over ten times as many."""
    return _grow(context, "Report", lambda lake, out: report(lake, out, spark=context.spark))


def measure_base(context: PipelineContext) -> Table:
    """Make reports by this checkout and by another one, each over a lake of its own with the same jobs, in turns."""
    assert context.base is not None
    table = Table(
        f"Report over {context.rows:,} jobs, compared with another checkout",
        ("report", "new, s", "old, s", "new/old"),
    )
    found: dict[str, list[list[float]]] = {"new": [], "old": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trioboss-lakes-")))
        roots = {"new": THIS_ROOT, "old": context.base}
        checkouts = {
            name: stack.enter_context(open_checkout(name, root, sys.executable))
            for name, root in roots.items()
        }
        table.notes.append(f"new is {checkouts['new'].commit}, old is {checkouts['old'].commit}")
        for name, checkout in checkouts.items():
            _run(checkout, {"role": "make", "lake": str(folder / name), "jobs": context.rows})
        for _ in range(context.repeats):
            for name, checkout in checkouts.items():
                spec = {"role": "report", "lake": str(folder / name), "rounds": 2}
                found[name].append(_run(checkout, spec)[1:])
                log(f"report by {name}: {', '.join(f'{took:.1f} s' for took in found[name][-1])}")
    for place, what in enumerate(("first of a session", "second")):
        new, old = ([took[place] for took in found[name]] for name in ("new", "old"))
        table.add(what, Spread.of(new), Spread.of(old), median(new) / median(old))
    return table


def _run(checkout: Checkout, spec: dict[str, Any]) -> list[float]:
    """Run the program with the package of a checkout, and return its seconds."""
    # Spark imports all packages that begin with pyspark_: that of this checkout belongs to its trioboss.
    shadow = checkout.folder / "pyspark_trioboss"
    if not shadow.exists():
        shadow.mkdir()
        (shadow / "__init__.py").write_text('"""There is no source here."""\n')
    command = python_module(_PROGRAM, checkout.python)
    done = run_program(command, spec, "done", {"PYTHONPATH": str(checkout.folder)}, _TIMEOUT, checkout.folder)
    if Path(done["trioboss"]) != (checkout.root / "trioboss").resolve():
        raise ProgramFailed(
            f"{checkout.python} imports {done['trioboss']} instead of that of {checkout.root}"
        )
    return [float(took) for took in done["seconds"]]


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
