"""Compare two checkouts of trioboss in the same run.

    python -m benchmarks compare ../other-worktree --rounds 5
    python -m benchmarks compare                    # this checkout alone: only the ratios within it

Both run the same work in turns on the same server, each run in a fresh database: "new" is this checkout, "old" is the
other one. Only the public API and Postgres's own statistics are used, so the two may have different tables. Rows:

drain        batched (prefetch 1000) with and without history, unbatched (concurrency 10)
bulk, single sends by one call of insert, and one by one
keyed drain  each policy, with a key for each job and with 100 keys. Policies that allow one queued job for each key are
             refilled with 100 jobs at a time, instead of draining a backlog
claim of 10  median and worst, from a queue that has only those 10, behind 100,000 arrivals on held keys, with
             100,000 new jobs on as many keys, and with 1,000,000 admitted ones (all key_strict_fifo)
idle latency send to handler, two processes, one job each 20 ms

`new/old` is the median, with the range, of the ratios of the rounds. Compare a checkout with itself to see the noise.
`--only` takes parts of the row names, such as "drain batched", "key_strict_fifo" or "claim". On a busy machine the
figures of CPU and WAL are usable; jobs a second and milliseconds are not. Takes about 5 minutes for each round.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.comparing.checkout import THIS_ROOT, Checkout, find_python, open_checkout
from benchmarks.comparing.measuring import Figures, measure_row
from benchmarks.comparing.reporting import Measured, make_tables
from benchmarks.comparing.rows import QUICK, Row, Sizes, make_rows
from benchmarks.harness.environment import as_text, describe
from benchmarks.harness.options import RESULTS, Options
from benchmarks.harness.progress import log
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server, open_server

__all__ = ["main"]

# A checkpoint in the middle of a run would add its full-page images to one side only. Each run begins with one.
_SETTINGS: dict[str, str | int | bool] = {"checkpoint_timeout": "1h", "max_wal_size": "16GB"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store the comparison."""
    given = _parse(arguments)
    sizes = QUICK if given.quick else Sizes(many=given.many)
    only = tuple(part for part in given.only.split(",") if part)
    options = Options(commands=("compare",), only=only)
    rows = [row for row in make_rows(sizes) if options.includes(row.name)]
    if not rows:
        raise SystemExit(f"--only: no row has {given.only!r} in its name")
    with contextlib.ExitStack() as stack:
        checkouts = [stack.enter_context(open_checkout("new", THIS_ROOT, sys.executable))]
        if given.other is not None:
            python = find_python(given.other, given.other_python, given.cache)
            checkouts.append(stack.enter_context(open_checkout("old", given.other, python)))
        server = stack.enter_context(open_server(given.dsn, _SETTINGS))
        environment = describe(server)
        print(as_text(environment), end="\n\n", flush=True)
        report = _measure(server, checkouts, rows, 1 if given.quick else given.rounds)
        print(report.render(), flush=True)
        log(f"stored in {report.save(given.results, environment)}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = Options(commands=())
    parser.add_argument(
        "other", type=Path, nargs="?", metavar="CHECKOUT", help="the other checkout, by its folder"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--only", default="", metavar="A,B", help="only rows whose names contain one of these"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: shows that it works")
    parser.add_argument(
        "--many", type=int, default=1_000_000, metavar="N", help="keys of the largest claim row"
    )
    parser.add_argument("--dsn", help="a Postgres in which databases are created (default: start one)")
    parser.add_argument(
        "--other-python", metavar="PYTHON", help="its interpreter (default: its .venv, or one made for it)"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the raw JSON files")
    cache = Path(os.environ.get("TRIOBOSS_BENCH_CACHE", default.cache))
    parser.add_argument(
        "--cache", type=Path, default=cache, help=f"folder of that interpreter (default: {default.cache})"
    )
    return parser.parse_args(arguments)


def _measure(server: Server, checkouts: Sequence[Checkout], rows: Sequence[Row], rounds: int) -> Report:
    report = Report("compare")
    names = [checkout.name for checkout in checkouts]
    measured: Measured = {row.name: {name: [] for name in names} for row in rows}
    for number in range(rounds):
        # The side that runs second may find warmer caches, so the order alternates.
        order = list(checkouts) if number % 2 == 0 else list(reversed(checkouts))
        for row in rows:
            for checkout in order:
                figures = measure_row(server, checkout, row)
                measured[row.name][checkout.name].append(figures)
                report.noise.add(f"{row.name}, {checkout.name}", figures.noise)
                log(f"{number + 1}/{rounds} {row.name}, {checkout.name}: {_in_short(figures)}")
    report.tables += make_tables(rows, measured, names)
    report.tables[-1].notes += [*_describe(checkouts), *report.noise.notes()]
    report.measures |= {
        row: {name: [attrs.asdict(each) for each in found] for name, found in sides.items()}
        for row, sides in measured.items()
    }
    return report


def _in_short(figures: Figures) -> str:
    if figures.rate is None:
        return f"median {figures.median_ms:.2f} ms, worst {figures.worst_ms:.2f} ms"
    return f"{figures.rate:,.0f} jobs/s, {figures.postgres_us:.1f} µs Postgres, {figures.worker_us:.1f} µs worker"


def _describe(checkouts: Sequence[Checkout]) -> list[str]:
    lines = []
    for checkout in checkouts:
        versions = ", ".join(f"{name} {version}" for name, version in checkout.versions.items())
        lines.append(f"{checkout.name}: commit {checkout.commit}, {versions}")
    if len({tuple(checkout.versions.items()) for checkout in checkouts}) > 1:
        lines.append("the two run on different versions: the ratios include that difference")
    return lines
