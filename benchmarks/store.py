"""What do the operations and connections below the runtime cost?

claim   claims of 10 jobs from queues of all sizes, to a claim from a queue that has only those 10
send    `send` to a bare prepared INSERT
bulk    `insert` to a bare COPY
select  a round trip to blocking psycopg's, and to psycopg's under trio-asyncio; wake-ups of a listening connection
job     the worker's CPU for a job that does nothing
memory  the worker's memory after many jobs to that after few
queues  start, CPU and memory of a worker of 10,000 queues

`--only` takes these names. Takes about 10 minutes.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import attrs
import trio

from benchmarks.harness.bare_connections import (
    compare_bulk,
    compare_round_trips,
    compare_sends,
    count_wakeups,
)
from benchmarks.harness.draining import drain
from benchmarks.harness.filling import admit_all, block_key, fill_jobs, measure_claims
from benchmarks.harness.idling import IdleProgram, observe
from benchmarks.harness.meters import Meter, resident_of
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import median
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.processes import python_module, started
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Spread, Table
from benchmarks.idle import with_queues

__all__ = ["measure"]

_WORKER: dict[str, Any] = {"concurrency": 10, "prefetch": 1000}
_IN_ORDER: dict[str, Any] = {**_WORKER, "policy": "key_strict_fifo"}


@attrs.frozen
class _Found:
    """A value, the value it is compared with, and the target for their ratio or for the value itself."""

    name: str
    unit: str
    value: float
    against: float | None = None
    target: str = ""


Measure = Callable[[Server, Options], Iterator[_Found]]


def measure(server: Server, options: Options) -> Report:
    """Take all measures, and repeat that."""
    report = Report("store")
    found: dict[str, list[_Found]] = {}
    for repeat in range(options.repeats):
        for name, take in _MEASURES.items():
            if not options.includes(name):
                continue
            with Meter(server.postmaster) as meter:
                for each in take(server, options):
                    found.setdefault(each.name, []).append(each)
                    log(f"{repeat + 1}/{options.repeats} {each.name}: {each.value:,.3g} {each.unit}")
            report.noise.add(name, meter.noise)
    report.tables.append(_table(found, report))
    report.plots.append(Bars("The store", "ratio to the reference", list(_bars(found))))
    report.measures |= {name: [attrs.asdict(each) for each in values] for name, values in found.items()}
    return report


def _table(found: dict[str, list[_Found]], report: Report) -> Table:
    table = Table("The store, and the Python of a job", ("measure", "value", "unit", "ratio", "target"))
    for name, values in found.items():
        ratios = [each.value / each.against for each in values if each.against]
        spread = Spread.of(each.value for each in values)
        table.add(name, spread, values[0].unit, Spread.of(ratios) if ratios else None, values[0].target)
    table.notes += [
        "a ratio is to the first row of the same kind, measured in the same run",
        *report.noise.notes(),
    ]
    return table


def _bars(found: dict[str, list[_Found]]) -> Iterator[Bar]:
    for name, values in found.items():
        if ratios := [each.value / each.against for each in values if each.against]:
            spread = Spread.of(ratios)
            yield Bar(f"{name} ({values[0].target})", spread.median, spread.low, spread.high)


def _claims(server: Server, options: Options) -> Iterator[_Found]:
    """Measure claims of 10 jobs, compared with claims from a queue that has only those 10."""
    empty = TRIOBOSS.template(server, _IN_ORDER)
    count = options.size(120, 30)
    blocked, many = options.size(100_000, 2_000), options.size(1_000_000, 3_000)

    def claims(template: str, refill: bool = False) -> float:
        with server.database(template) as dsn:
            return median(trio.run(measure_claims, dsn, count, refill))

    def fill_admitted(dsn: str) -> None:
        fill_jobs(many, keyed=True)(dsn)
        admit_all(dsn, many)

    base = claims(empty.name, refill=True)
    yield _Found("claim of 10, nothing else queued (strict FIFO)", "ms", base)
    behind = server.template(
        f"{blocked} blocked", lambda dsn: block_key(dsn, blocked, 10 * count), empty.name
    )
    yield _Found(f"claim of 10, {blocked:,} behind one blocked key", "ms", claims(behind.name), base, "≤ 2")
    ready = server.template(f"{many} keys", fill_admitted, empty.name)
    yield _Found(f"claim of 10, {many:,} jobs on as many keys", "ms", claims(ready.name), base, "≤ 2")
    new = server.template(f"{many} new keys", fill_jobs(many, keyed=True), empty.name)
    yield _Found(f"claim of 10, {many:,} jobs just inserted, not yet admitted", "ms", claims(new.name), base)


def _sends(server: Server, options: Options) -> Iterator[_Found]:
    with server.database(TRIOBOSS.template(server, {}).name) as dsn:
        found = trio.run(compare_sends, dsn, options.size(10, 3), options.size(300, 50))
    yield _Found("bare prepared INSERT and commit", "/s", found["insert"])
    yield _Found("send", "/s", found["send"], found["insert"], "≥ 0.7")


def _bulk(server: Server, options: Options) -> Iterator[_Found]:
    count = options.size(100_000, 5_000)
    with server.database(TRIOBOSS.template(server, {}).name) as dsn:
        found = trio.run(compare_bulk, dsn, count)
    yield _Found(f"bare COPY of {count:,} such rows, no index", "rows/s", found["copy"])
    yield _Found(f"insert of {count:,} jobs", "jobs/s", found["insert"], found["copy"], "≥ 0.5")


def _round_trips(server: Server, options: Options) -> Iterator[_Found]:
    with server.database() as dsn:
        found = trio.run(compare_round_trips, dsn, options.size(10, 2), options.size(300, 50))
        blocking = found.pop("blocking psycopg")
        bridged = found.pop("psycopg under trio-asyncio")
        yield _Found("SELECT 1, blocking psycopg", "µs", blocking)
        for name, value in found.items():
            yield _Found(f"SELECT 1, {name}", "µs", value, blocking, "≤ 2")
        yield _Found("SELECT 1, psycopg under trio-asyncio", "µs", bridged, blocking)
        for name in ("run", "execute"):
            title = f"SELECT 1, trioboss's {name} to trio-asyncio's"
            yield _Found(title, "µs", found[f"trioboss, {name}"], bridged, "≤ 0.25")
        seconds = options.size(10.0, 1.0)
        woken = trio.run(count_wakeups, dsn, seconds)
        yield _Found(f"wake-ups of a listening connection in {seconds:g} s", "", float(woken), None, "0")


def _job_cost(server: Server, options: Options) -> Iterator[_Found]:
    jobs = options.size(22_000, 3_000)
    template = TRIOBOSS.template(server, _WORKER, jobs)
    found = drain(server, TRIOBOSS, _WORKER, template, jobs=jobs)
    yield _Found("CPU of the worker for a no-op job, batched", "µs", found["worker_us"], None, "≤ 40")


def _memory(server: Server, options: Options) -> Iterator[_Found]:
    """Measure the resident memory of a worker after a tenth of the jobs, and after all of them."""
    jobs = options.size(200_000, 5_000)
    template = TRIOBOSS.template(server, _WORKER, jobs)
    with (
        server.database(template.name) as dsn,
        TRIOBOSS.run("work", dsn, _WORKER, progress=True, record=False) as worker,
    ):
        seen: dict[int, int] = {}
        deadline = time.monotonic() + 300
        while worker.entries < jobs and time.monotonic() < deadline:
            for tenth in range(1, 10):
                if worker.entries >= tenth * jobs // 10:
                    seen.setdefault(tenth, resident_of(worker.pid))
            time.sleep(0.01)
        last = resident_of(worker.pid) / 2**20
    first = seen[min(seen)] / 2**20
    yield _Found(f"memory after {jobs // 10:,} jobs", "MB", first)
    yield _Found(f"memory after {jobs:,} jobs", "MB", last, first, "≤ 1.02")


def _many_queues(server: Server, options: Options) -> Iterator[_Found]:
    count = options.size(10_000, 100)
    seconds = options.size(20.0, 2.0)
    with ExitStack() as stack:
        dsn = stack.enter_context(server.database(with_queues(server, count)))
        spec = {"dsn": dsn, "queues": count}
        program = stack.enter_context(started(python_module("benchmarks.programs.idle_worker"), spec))
        ready = program.wait("ready", timeout=300)
        time.sleep(options.size(8.0, 1.0))
        found = observe(server, [IdleProgram("it", program, server.name(dsn))], seconds)["it"]
    yield _Found(f"start of a worker of {count:,} queues", "s", ready["seconds"], None, "≤ 10")
    scale = 20.0 / found["seconds"]
    yield _Found(
        f"its CPU in 20 s without jobs, {count:,} queues", "s", found["worker_cpu"] * scale, None, "≤ 0.02"
    )
    yield _Found(f"its memory, {count:,} queues", "MB", found["resident_mb"])


_MEASURES: dict[str, Measure] = {
    "claim": _claims,
    "send": _sends,
    "bulk": _bulk,
    "select": _round_trips,
    "job": _job_cost,
    "memory": _memory,
    "queues": _many_queues,
}
