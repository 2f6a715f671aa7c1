"""What does a worker cost that has nothing to do?"""

import time
from contextlib import ExitStack
from typing import Any

import trioboss
from benchmarks.harness.idling import SETTLING, Watched, count_statements, log_statements, watch
from benchmarks.harness.options import Options
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.processes import python_module, started
from benchmarks.harness.progress import say
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Spread, Table
from benchmarks.programs.idler import QUEUE

__all__ = ["measure", "with_queues"]

_PROGRAM = "benchmarks.programs.idler"
_START_UP = 120.0

Result = dict[str, Any]


def measure(server: Server, options: Options) -> Report:
    """One queue, a thousand and ten thousand, side by side, each in a database of its own."""
    report = Report("idle")
    counts = options.size((1, 1000, 10_000), (1, 50))
    results: dict[int, list[Result]] = {count: [] for count in counts}
    for repeat in range(options.repeats):
        for count, result in _round(server, options, counts).items():
            results[count].append(result)
            say(f"{repeat + 1}/{options.repeats} {count} queues: {result['worker_cpu']:.3f} s CPU")
            report.noise.add(f"{count} queues", result["noise"])
    report.tables.append(_table(results, options, report))
    bars = [
        Bar(f"trioboss, {count} queues", _a_minute(found, "worker_cpu").median)
        for count, found in results.items()
    ]
    report.plots.append(Bars("CPU of a worker at rest", "s a minute", bars))
    report.measures |= {str(count): found for count, found in results.items()}
    return report


def with_queues(server: Server, count: int) -> str:
    """The name of a template with so many empty queues."""

    def fill(dsn: str) -> None:
        with trioboss.SyncBoss(dsn, migrate=False) as boss, boss.transaction() as conn:
            for number in range(count):
                boss.create_queue(QUEUE.format(number), conn=conn)

    return server.template(f"{count:,} queues", fill, server.migrated()).name


def _round(server: Server, options: Options, counts: tuple[int, ...]) -> dict[int, Result]:
    """Once without logging, for the CPU; once with it, to count statements."""
    seconds = options.size(60.0, 4.0)
    results: dict[int, Result] = {}
    for logged in (False, True):
        with ExitStack() as stack:
            watched = [_start(server, stack, count, logged) for count in counts]
            time.sleep(options.size(SETTLING, 1.0))
            if not logged:
                found = watch(server, watched, seconds)
                results = {int(name): result for name, result in found.items()}
            elif (
                statements := count_statements(server, [each.database for each in watched], seconds)
            ) is not None:
                for each in watched:
                    results[int(each.name)]["statements"] = statements[each.database]
    return results


def _start(server: Server, stack: ExitStack, count: int, logged: bool) -> Watched:
    dsn = stack.enter_context(server.database(with_queues(server, count)))
    if logged:
        log_statements(server, server.name(dsn))
    spec = {"dsn": dsn, "queues": count}
    program = stack.enter_context(started(python_module(_PROGRAM), spec))
    program.wait("ready", timeout=_START_UP)
    return Watched(str(count), program, server.name(dsn))


def _a_minute(found: list[Result], name: str) -> Spread:
    return Spread.of(result[name] / result["seconds"] * 60 for result in found)


def _table(results: dict[int, list[Result]], options: Options, report: Report) -> Table:
    columns = (
        "queues",
        "worker CPU s",
        "Postgres CPU s",
        "wake-ups",
        "statements",
        "connections",
        "memory MB",
    )
    table = Table("A worker at rest, for one minute", columns)
    for count, found in results.items():
        statements = [result["statements"] for result in found if "statements" in result]
        table.add(
            count,
            _a_minute(found, "worker_cpu"),
            _a_minute(found, "postgres_cpu"),
            Spread.of(result["wakeups_a_minute"] for result in found),
            Spread.of(statements) if statements else None,
            Spread.of(result["connections"] for result in found),
            Spread.of(result["resident_mb"] for result in found),
        )
    seconds = options.size(60, 4)
    table.notes += [
        f"measured over {seconds} s, after the worker had settled; it also leads: maintenance and cron are its own",
        "wake-ups: voluntary context switches of all its threads; statements: from the server's log, in a run apart",
        *report.noise.notes(),
    ]
    return table
