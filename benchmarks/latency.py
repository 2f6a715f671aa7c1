"""How long does a job wait?

idle      send to handler on an idle queue, one job each 20 ms
load      send to handler at 10, 50 and 90 % of the rate that 10 senders and one worker reach together
deferred, retry, cron   how late a job starts after its due time
cancel    call of `cancel` to the cancellation of the handler
wait_for  end of a handler to the return of `wait_for` in another process
fifo      end of one job of a key to the start of the key's next one, under key_strict_fifo

Send to handler is the time from the call of `send` in one process to the first line of the handler in another one, with
concurrency 10 and no prefetch. `--only` takes these names. Takes about 6 minutes.
"""

import time
from collections.abc import Iterator
from typing import Any

import psycopg

from benchmarks.harness.meters import Meter
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import curve, summarize
from benchmarks.harness.plots import Curve, Curves
from benchmarks.harness.processes import ProgramFailed, python_module, started
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS
from benchmarks.harness.report import Report
from benchmarks.harness.runs import measure_latency, measure_steady
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Table
from benchmarks.programs.waits import KINDS

__all__ = ["measure"]

_WORKER = {"concurrency": 10}
_LOADS = (0.1, 0.5, 0.9)
_WAITS = {
    "deferred": "deferred job, after its due time",
    "retry": "retry, after its due time",
    "cron": "cron tick (each second), after its time",
    "cancel": "cancel → handler cancelled",
    "wait_for": "handler returned → wait_for returns",
    "fifo": "strict FIFO: job ended → next job of its key starts",
}
_PROGRAM = "benchmarks.programs.waits"

Samples = dict[str, list[float]]


def measure(server: Server, options: Options) -> Report:
    """Measure all waits."""
    report = Report("latency")
    samples: Samples = {}
    for repeat in range(options.repeats):
        for name, values in _round(server, options, report):
            samples.setdefault(name, []).extend(values)
            log(f"{repeat + 1}/{options.repeats} {name}: p50 {summarize(values).p50:.2f} ms")
    report.tables.append(_table(samples, options, report))
    sends = [Curve(name, curve(values)) for name, values in samples.items() if name.startswith("send")]
    others = [Curve(name, curve(values)) for name, values in samples.items() if not name.startswith("send")]
    plots = (Curves("From send to handler", "ms", sends), Curves("Other waits", "ms", others))
    report.plots += [plot for plot in plots if plot.curves]
    report.measures |= {
        name: {"curve_ms": curve(values), "count": len(values)} for name, values in samples.items()
    }
    return report


def _table(samples: Samples, options: Options, report: Report) -> Table:
    table = Table("Latency, ms", ("from → to", "jobs", "p50", "p95", "p99", "p99.9", "max"))
    for name, values in samples.items():
        found = summarize(values)
        table.add(name, found.count, found.p50, found.p95, found.p99, found.p999, found.max)
    if capacity := report.measures.get("capacity"):
        table.notes.append(
            f"100 % load is {capacity:,.0f} jobs/s: 10 senders and this worker, all at full speed"
        )
    table.notes += [
        "sender and worker are two processes; concurrency 10, no prefetch; each send and each claim is one commit",
        f"counted from the time at which a job should have been sent; samples of {options.repeats} rounds",
        *report.noise.notes(),
    ]
    return table


def _round(server: Server, options: Options, report: Report) -> Iterator[tuple[str, list[float]]]:
    if options.includes("idle"):
        count = options.size(1000, 60)
        yield "send → handler, idle (one job each 20 ms)", _paced(server, report, "idle", count, 50.0)
    if options.includes("load"):
        yield from _under_load(server, options, report)
    for kind in KINDS:
        if options.includes(kind):
            yield _WAITS[kind], _wait(server, options, report, kind)


def _paced(server: Server, report: Report, name: str, count: int, rate: float) -> list[float]:
    result = measure_latency(server, TRIOBOSS, _WORKER, count=count, rate=rate)
    report.noise.add(name, result["noise"])
    values: list[float] = result.pop("ms")
    report.measures.setdefault("runs", []).append({"name": name, "rate": rate, **result})
    return values


def _under_load(server: Server, options: Options, report: Report) -> Iterator[tuple[str, list[float]]]:
    """Measure at shares of the capacity of 10 senders and the worker, which the first round finds."""
    if "capacity" not in report.measures:
        full = measure_steady(server, TRIOBOSS, _WORKER, seconds=options.size(5.0, 1.0))
        report.measures["capacity"] = full["handled"]
        report.noise.add("capacity", full["noise"])
    for load in _LOADS:
        rate = max(20.0, load * report.measures["capacity"])
        count = round(rate * options.size(10.0, 1.0))
        name = f"send → handler, {load:.0%} load"
        yield name, _paced(server, report, name, count, rate)


def _wait(server: Server, options: Options, report: Report, kind: str) -> list[float]:
    """Return the milliseconds of one of the other waits."""
    count = options.size(20 if kind == "cron" else 200, 2 if kind == "cron" else 20)
    spec = {"kind": kind, "n": count, "server_ahead": _server_ahead(server)}
    command = python_module(_PROGRAM)
    with server.database() as dsn, started(command, {**spec, "role": "work", "dsn": dsn}) as worker:
        worker.wait("ready")
        with (
            started(command, {**spec, "role": "send", "dsn": dsn}) as sender,
            Meter(server.postmaster, lambda: worker.cpu() + sender.cpu()) as meter,
        ):
            sent = sender.wait("recorded", timeout=120)
            time.sleep(count if kind == "cron" else 0.0)
            values = _collect(kind, worker, sent, count)
    report.noise.add(kind, meter.noise)
    return values


def _collect(kind: str, worker: Any, sent: dict[str, Any], count: int) -> list[float]:
    """Request the worker's times until it has recorded all jobs."""
    values: list[float] = []
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        values = _join(kind, worker.request({"do": "report"}, "recorded")["times"], sent["times"])
        if len(values) >= count - (kind == "fifo"):
            return values[:count]
        time.sleep(0.05)
    raise ProgramFailed(f"{kind}: {len(values)} of {count} jobs were recorded")


def _join(kind: str, worker: dict[str, dict[str, float]], sender: dict[str, dict[str, float]]) -> list[float]:
    """Return the milliseconds between the times of one side and those of the other."""
    none: dict[str, float] = {}
    if kind == "cancel":
        pairs = _pairs(sender.get("asked", none), worker.get("cancelled", none))
    elif kind == "wait_for":
        pairs = _pairs(worker.get("done", none), sender.get("returned", none))
    elif kind == "fifo":
        following = {str(int(job) - 1): entered for job, entered in worker.get("entered", none).items()}
        pairs = _pairs(worker.get("done", none), following)
    else:
        return [late * 1000 for late in worker.get("late", none).values()]
    return [(end - begin) * 1000 for begin, end in pairs]


def _pairs(begins: dict[str, float], ends: dict[str, float]) -> list[tuple[float, float]]:
    return [(begin, ends[job]) for job, begin in begins.items() if job in ends]


def _server_ahead(server: Server) -> float:
    """Return the seconds by which the server's clock is ahead of ours; 0 for the benchmark's own server."""
    if server.own is not None:
        return 0.0
    best = (float("inf"), 0.0)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for _ in range(20):
            before = time.time()
            row = connection.execute("select extract(epoch from clock_timestamp())::float8").fetchone()
            after = time.time()
            assert row is not None
            best = min(best, (after - before, row[0] - (before + after) / 2))
    return best[1]
