"""`python -m tests.chaos`: run one plan and print what held."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.harness.environment import public_arguments
from benchmarks.harness.options import RESULTS
from benchmarks.harness.progress import log
from benchmarks.harness.report import Report
from benchmarks.harness.tables import Table
from tests.chaos.harness.chaos_run import run
from tests.chaos.harness.checker import Verdict, check
from tests.chaos.harness.figures import count
from tests.chaos.harness.plan import QUICK, Plan

__all__ = ["main"]

_SIZES = {
    "jobs": "jobs to send",
    "kills": "SIGKILLs of workers",
    "stops": "SIGSTOPs of workers",
    "restarts": "immediate restarts of Postgres",
    "others": "how often each other fault happens: connections, network, locks, snapshots",
    "seconds": "the time over which sends and faults are spread",
    "workers": "worker processes",
    "manual_workers": "processes that fetch and settle jobs themselves",
    "producers": "sending processes",
    "poison": "jobs that kill the worker that runs them",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one plan; return 1 if a promise was broken."""
    given = sys.argv[1:] if arguments is None else arguments
    plan, results = _parse(given)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    history = run(plan, folder, log)
    verdict = check(history)
    report = _report(plan, verdict, count(history))
    print(report.render(), flush=True)
    command = " ".join(["python -m tests.chaos", *public_arguments(given)])
    log(f"stored in {report.save(results, {'command': command, 'plan': attrs.asdict(plan)})}")
    if verdict.is_good:
        shutil.rmtree(folder)
    else:
        print(f"{verdict}\nThe journals are in {folder}.")
    return int(not verdict.is_good)


def _parse(arguments: Sequence[str]) -> tuple[Plan, Path]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description="Kill, stop and cut off everything at once, and check afterwards that every promise held. "
        "The exit code is 1 if one was broken. A full run takes about 7 minutes, a quick one half a minute.",
    )
    parser.add_argument("--quick", action="store_true", help="20 kills and 2 restarts instead of 200 and 20")
    parser.add_argument("--seed", type=int, default=1, help="decides jobs and faults (default: 1)")
    for size, text in _SIZES.items():
        parser.add_argument(
            f"--{size.replace('_', '-')}",
            type=type(getattr(QUICK, size)),
            metavar="N",
            help=f"{text} (default: {getattr(Plan(), size):g}, quick: {getattr(QUICK, size):g})",
        )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the raw JSON file")
    found = parser.parse_args(arguments)
    given = {size: getattr(found, size) for size in _SIZES if getattr(found, size) is not None}
    return attrs.evolve(QUICK if found.quick else Plan(), seed=found.seed, **given), found.results


def _report(plan: Plan, verdict: Verdict, figures: dict[str, float]) -> Report:
    violations = Table("Violations", ("check", "violations"))
    for name, lines in verdict.found.items():
        violations.add(name.replace("_", " "), len(lines))
    events = Table(f"What happened (seed {plan.seed})", ("event", "count"))
    for name, number in figures.items():
        events.add(name, number)
    measures = {"violations": verdict.found, "figures": figures}
    return Report("chaos", [violations, events], measures=measures)
