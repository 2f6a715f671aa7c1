"""`python -m tests.chaos`: run one plan and print what held."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.harness.environment import describe_machine, describe_versions, public_arguments
from benchmarks.harness.options import RESULTS
from benchmarks.harness.progress import log
from benchmarks.harness.report import Report
from benchmarks.harness.tables import Table
from tests.chaos.harness.chaos_run import run
from tests.chaos.harness.checker import CheckResult, check
from tests.chaos.harness.figures import count, count_by_fault
from tests.chaos.harness.history import History
from tests.chaos.harness.plan import QUICK, Plan, soak

__all__ = ["main"]

_SIZES = {
    "jobs": "jobs to send",
    "kills": "SIGKILLs of workers",
    "terms": "SIGTERMs of workers",
    "stops": "SIGSTOPs of workers",
    "restarts": "immediate restarts of Postgres",
    "others": "how often each other fault happens: connections, network, locks, snapshots",
    "seconds": "the time over which sends and faults are spread",
    "calm": "faults at the end, each alone",
    "workers": "worker processes",
    "steady": "worker processes that are never killed, and whose memory is measured",
    "disk": "gigabytes of the disk of the data; 0: an ordinary one",
    "manual_workers": "processes that fetch and settle jobs themselves",
    "producers": "sending processes",
    "keys": "keys, besides a few that many jobs have",
    "poison": "jobs that kill the worker that runs them",
    "long": "share of the jobs that take most of a lease",
    "large": "share of the jobs with a payload or an output of up to several megabytes",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one plan; return 1 if a promise was broken."""
    given = sys.argv[1:] if arguments is None else arguments
    plan, results = _parse(given)
    began = time.monotonic()
    described = {"machine": describe_machine(Path(tempfile.gettempdir())), "versions": describe_versions()}
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    history = run(plan, folder, log)
    result = check(history)
    report = _report(plan, result, history, time.monotonic() - began)
    print(report.render(), flush=True)
    command = " ".join(["python -m tests.chaos", *public_arguments(given)])
    environment = {"command": command, "plan": attrs.asdict(plan), **described}
    log(f"stored in {report.save(results, environment)}")
    if result.is_good:
        shutil.rmtree(folder)
    else:
        print(f"{result}\nThe journals are in {folder}.")
    return int(not result.is_good)


def _parse(arguments: Sequence[str]) -> tuple[Plan, Path]:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description="Kill, stop and cut off everything at once, and check afterwards that every promise held. "
        "The exit code is 1 if one was broken. A full run takes about 7 minutes, a quick one half a minute.",
    )
    parser.add_argument("--quick", action="store_true", help="20 kills and 2 restarts instead of 200 and 20")
    parser.add_argument(
        "--soak",
        type=float,
        metavar="SECONDS",
        help="steady load, 300 jobs a second, on three cores, with faults in the first half of each minute",
    )
    parser.add_argument("--seed", type=int, default=1, help="decides jobs and faults (default: 1)")
    for size, text in _SIZES.items():
        parser.add_argument(
            f"--{size.replace('_', '-')}",
            type=type(getattr(QUICK, size)),
            metavar="N",
            help=f"{text} (default: {getattr(Plan(), size):g}, quick: {getattr(QUICK, size):g})",
        )
    parser.add_argument(
        "--other",
        metavar="REVISION",
        help="every second worker process imports the trioboss of this revision",
    )
    parser.add_argument(
        "--failover", action="store_true", help="at the end, lose the server and promote its standby"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the raw JSON file")
    found = parser.parse_args(arguments)
    given = {size: getattr(found, size) for size in _SIZES if getattr(found, size) is not None}
    given |= {"other": found.other, "failover": found.failover, "seed": found.seed}
    plan = QUICK if found.quick else Plan() if found.soak is None else soak(found.soak)
    return attrs.evolve(plan, **given), found.results


def _report(plan: Plan, result: CheckResult, history: History, seconds: float) -> Report:
    violations = Table("Violations", ("check", "violations"))
    for name, lines in result.found.items():
        violations.add(name.replace("_", " "), len(lines))
    figures = {"seconds": seconds, **count(history)}
    events = Table(f"What happened (seed {plan.seed})", ("event", "count"))
    for name, number in figures.items():
        if not name.startswith("fault: "):
            events.add(name, number)
    faults = Table("Faults", ("fault", "count", "seconds", "leases that it may have ended"))
    for kind, found in count_by_fault(history).items():
        faults.add(kind, *found)
    measures: dict[str, Any] = {"violations": result.found, "figures": figures}
    return Report("chaos" if not plan.steady else "soak", [violations, events, faults], measures=measures)
