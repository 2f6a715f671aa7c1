"""What does a worker cost that has nothing to do?

CPU, memory, connections, statements and wake-ups of an idle worker in one minute, with 1, 1,000 and 10,000 queues. Each
worker has a database of its own; all of them run side by side. Statements are counted in a separate run, from the
server's log, because logging costs CPU. Takes about 8 minutes.
"""

import time
from contextlib import ExitStack
from typing import Any

import trioboss
from benchmarks.harness.idling import SETTLING, IdleProgram, count_statements, log_statements, observe
from benchmarks.harness.options import Options
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.processes import python_module, started
from benchmarks.harness.progress import log
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Spread, Table
from benchmarks.programs.idle_worker import QUEUE

__all__ = ["measure", "with_queues"]

_PROGRAM = "benchmarks.programs.idle_worker"
_START_UP = 120.0

Result = dict[str, Any]


def measure(server: Server, options: Options) -> Report:
    """Measure workers of 1, 1,000 and 10,000 queues."""
    report = Report("idle")
    counts = options.size((1, 1000, 10_000), (1, 50))
    results: dict[int, list[Result]] = {count: [] for count in counts}
    for repeat in range(options.repeats):
        for count, result in _round(server, options, counts).items():
            results[count].append(result)
            log(f"{repeat + 1}/{options.repeats} {count} queues: {result['worker_cpu']:.3f} s CPU")
            report.noise.add(f"{count} queues", result["noise"])
    report.tables.append(_table(results, options, report))
    bars = [
        Bar(f"trioboss, {count} queues", _a_minute(found, "worker_cpu").median)
        for count, found in results.items()
    ]
    report.plots.append(Bars("CPU of an idle worker", "s a minute", bars))
    report.measures |= {str(count): found for count, found in results.items()}
    return report


def with_queues(server: Server, count: int) -> str:
    """Return the name of a template with so many empty queues."""

    def fill(dsn: str) -> None:
        with trioboss.SyncBoss(dsn, migrate=False) as boss, boss.transaction() as conn:
            for number in range(count):
                boss.create_queue(QUEUE.format(number), conn=conn)

    return server.template(f"{count:,} queues", fill, server.migrated()).name


def _round(server: Server, options: Options, counts: tuple[int, ...]) -> dict[int, Result]:
    """Observe the workers twice: without logging for the CPU, with logging to count statements."""
    seconds = options.size(60.0, 4.0)
    results: dict[int, Result] = {}
    for logged in (False, True):
        with ExitStack() as stack:
            programs = [_start(server, stack, count, logged) for count in counts]
            time.sleep(options.size(SETTLING, 1.0))
            if not logged:
                found = observe(server, programs, seconds)
                results = {int(name): result for name, result in found.items()}
            elif (
                statements := count_statements(server, [each.database for each in programs], seconds)
            ) is not None:
                for each in programs:
                    results[int(each.name)]["statements"] = statements[each.database]
    return results


def _start(server: Server, stack: ExitStack, count: int, logged: bool) -> IdleProgram:
    dsn = stack.enter_context(server.database(with_queues(server, count)))
    if logged:
        log_statements(server, server.name(dsn))
    spec = {"dsn": dsn, "queues": count}
    program = stack.enter_context(started(python_module(_PROGRAM), spec))
    program.wait("ready", timeout=_START_UP)
    return IdleProgram(str(count), program, server.name(dsn))


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
    table = Table("An idle worker, for one minute", columns)
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
        f"measured over {seconds} s, after a pause; the worker also does maintenance and cron",
        "wake-ups: voluntary context switches of all threads; statements: from the server's log, in a separate run",
        *report.noise.notes(),
    ]
    return table
