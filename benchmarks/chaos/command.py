"""`python -m benchmarks chaos`: break everything, and print what held."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.chaos.checker import Verdict, judge
from benchmarks.chaos.conductor import run
from benchmarks.chaos.figures import count
from benchmarks.chaos.plan import Plan
from benchmarks.harness.progress import say
from benchmarks.harness.report import Report
from benchmarks.harness.tables import Table

__all__ = ["QUICK", "main"]

QUICK = Plan(jobs=450, kills=20, stops=8, restarts=2, others=2, seconds=16.0, poison=1)
_SIZES = (
    "jobs",
    "kills",
    "stops",
    "restarts",
    "others",
    "seconds",
    "workers",
    "by_hand",
    "producers",
    "poison",
)


def main(arguments: Sequence[str]) -> int:
    """Run one plan; 1 if a promise was broken."""
    plan, results = _parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    history = run(plan, folder, say)
    verdict = judge(history)
    report = _report(plan, verdict, count(history))
    print(report.render(), flush=True)
    say(f"kept as {report.save(results, {'command': 'chaos', **attrs.asdict(plan)})}")
    if verdict.is_good:
        shutil.rmtree(folder)
    else:
        print(f"{verdict}\nThe journals are in {folder}.")
    return int(not verdict.is_good)


def _parse(arguments: Sequence[str]) -> tuple[Plan, Path]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks chaos",
        description="Kill, stop and cut off everything, and check afterwards that every promise held.",
    )
    parser.add_argument("--quick", action="store_true", help="20 kills and 2 restarts instead of 200 and 20")
    parser.add_argument("--seed", type=int, default=1, help="decides jobs and faults (default: 1)")
    for size in _SIZES:
        parser.add_argument(f"--{size.replace('_', '-')}", type=type(getattr(QUICK, size)), metavar="N")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    found = parser.parse_args(arguments)
    given = {size: getattr(found, size) for size in _SIZES if getattr(found, size) is not None}
    return attrs.evolve(QUICK if found.quick else Plan(), seed=found.seed, **given), found.results


def _report(plan: Plan, verdict: Verdict, figures: dict[str, float]) -> Report:
    promises = Table("Violations", ("what", "how many"))
    for name, lines in verdict.found.items():
        promises.add(name.replace("_", " "), len(lines))
    told = Table(f"What happened (seed {plan.seed})", ("what", "how many"))
    for name, number in figures.items():
        told.add(name, number)
    measures = {"violations": verdict.found, "figures": figures}
    return Report("chaos", [promises, told], measures=measures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
