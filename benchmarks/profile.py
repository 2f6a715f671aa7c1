"""Where do the microseconds of one job go?

One job's CPU in the worker by layer and by function (sampled), Postgres's by kind of process and by statement, and
the time in which the worker waits; for three kinds of drain: "concurrency 10", "prefetch 1000" and "nothing kept".
Then each step of a single job through an idle queue ("steps"), from the call of send to the durable completion.
`--only` takes these names. Takes about 2 minutes.
"""

import re
import time
from pathlib import Path
from typing import Any

import attrs

from benchmarks.harness.idling import log_statements
from benchmarks.harness.meters import Meter, children_of, cpu_of
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import median, percentile
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.processes import Program, ProgramFailed, python_module
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS, QueueProgram, wait_drained
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Table

__all__ = ["measure"]

_PROFILED = attrs.evolve(TRIOBOSS, command=tuple(python_module("benchmarks.programs.profiled_worker")))
_WORKERS: dict[str, dict[str, Any]] = {
    "concurrency 10": {"concurrency": 10},
    "prefetch 1000": {"concurrency": 10, "prefetch": 1000},
    "prefetch 1000, nothing kept": {"concurrency": 10, "prefetch": 1000, "keep_completed": False},
}
_STEPS = (
    ("send called → the worker receives the notification", "called", "notified"),
    ("notification received → claim sent", "notified", "claim_sent"),
    ("claim sent → answered", "claim_sent", "claimed"),
    ("answered → handler entered", "claimed", "entered"),
    ("send called → handler entered", "called", "entered"),
    ("send called → returned to the caller", "called", "returned"),
    ("handler entered → completion durable", "entered", "settled"),
)
_EXECUTED = re.compile(r"@(\S+) LOG:  duration: ([\d.]+) ms  (?:execute|bind) (?:<unnamed>|([\w~]+))")

Result = dict[str, Any]
Split = dict[str, float]


def measure(server: Server, options: Options) -> Report:
    """Drain three times for each kind: plainly for the sums, sampled for the layers, logged for the statements."""
    report = Report("profile")
    jobs = options.size(22_000, 3_000)
    parts: dict[str, Split] = {}
    statements: dict[str, dict[str, tuple[float, float]]] = {}
    for name, settings in _WORKERS.items():
        if not options.includes(name):
            continue
        sums = _drain(server, TRIOBOSS, settings, jobs)
        sampled = _drain(server, _PROFILED, {**settings, "sample": True}, jobs)
        parts[name] = _split(sums, sampled)
        report.noise.add(name, sums["noise"])
        report.measures[name] = {**sums, "functions": _functions(sums, sampled)}
        if server.log is not None:
            statements[name] = _drain(server, TRIOBOSS, settings, jobs, logged=True)["statements"]
        log(f"{name}: {sums['worker_us']:.1f} µs in the worker, {sums['postgres_us']:.1f} in Postgres")
    report.tables.append(_table(parts, report))
    report.tables.append(_function_table(report))
    if statements:
        report.tables.append(_statement_table(statements))
    if options.includes("steps"):
        report.tables.append(_step_table(server, options, report))
    for name, split in parts.items():
        report.plots.append(
            Bars(f"One job, {name}", "µs", [Bar(part, value) for part, value in split.items()])
        )
    return report


# -- drains


@attrs.frozen
class _Reading:
    at: float
    count: int
    worker: float
    postgres: dict[str, float]
    """CPU seconds by kind of process."""


def _read(server: Server, worker: Program) -> _Reading:
    postgres: dict[str, float] = {}
    for pid in [] if server.postmaster is None else children_of(server.postmaster):
        kind = _kind_of(pid)
        postgres[kind] = postgres.get(kind, 0.0) + cpu_of(pid)
    return _Reading(time.monotonic(), worker.entries, worker.cpu(), postgres)


def _drain(
    server: Server, queue: QueueProgram, settings: dict[str, Any], jobs: int, *, logged: bool = False
) -> Result:
    """Return the microseconds a job, measured between a tenth and nine tenths of the jobs."""
    template = queue.template(server, settings, jobs)
    with server.database(template.name) as dsn:
        if logged:
            log_statements(server, server.name(dsn))
        begin = 0 if server.log is None else server.log.stat().st_size
        with (
            queue.run("work", dsn, settings, progress=True) as worker,
            Meter(server.postmaster, worker.cpu) as meter,
        ):
            worker.wait("ready")
            first = _wait_for(server, worker, jobs // 10)
            last = _wait_for(server, worker, jobs * 9 // 10)
            meter.stop()
            wait_drained(dsn, template, 60.0, pause=0.05)
            recorded = worker.request({"do": "report"}, "recorded")
        result = _result(first, last, recorded)
        if logged and server.log is not None:
            result["statements"] = _read_statements(server.log, begin, server.name(dsn), jobs)
    return {**result, "noise": meter.noise}


def _wait_for(server: Server, worker: Program, count: int) -> _Reading:
    deadline = time.monotonic() + 120
    while worker.entries < count:
        if time.monotonic() > deadline:
            raise ProgramFailed(f"{worker.entries} of {count} jobs in two minutes")
        time.sleep(0.002)
    return _read(server, worker)


def _result(first: _Reading, last: _Reading, recorded: Result) -> Result:
    jobs = max(1, last.count - first.count)
    postgres = {
        kind: max(0.0, used - first.postgres.get(kind, 0.0)) / jobs * 1e6
        for kind, used in last.postgres.items()
    }
    return {
        "wall_us": (last.at - first.at) / jobs * 1e6,
        "worker_us": (last.worker - first.worker) / jobs * 1e6,
        "postgres_us": sum(postgres.values()),
        "postgres": postgres,
        "layers": recorded.get("layers", {}),
        "functions": recorded.get("functions", {}),
    }


def _kind_of(pid: int) -> str:
    """Return the kind of a Postgres process, from its title."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return "ended"
    found = re.match(
        r"postgres: (walwriter|checkpointer|background writer|autovacuum|io worker|logical)", title
    )
    return found[1] if found else "backends"


def _split(sums: Result, sampled: Result) -> Split:
    """Divide the sums in proportion to the samples."""
    parts: Split = {}
    total = sum(sampled["layers"].values()) or 1
    for layer, count in sorted(sampled["layers"].items(), key=lambda item: -item[1]):
        parts[f"worker: {layer}"] = sums["worker_us"] * count / total
    for kind, used in sorted(sums["postgres"].items(), key=lambda item: -item[1]):
        if used >= 0.05:
            parts[f"Postgres: {kind}"] = used
    parts["worker waiting"] = max(0.0, sums["wall_us"] - sums["worker_us"])
    return parts


def _functions(sums: Result, sampled: Result) -> dict[str, float]:
    total = sum(sampled["layers"].values()) or 1
    return {name: sums["worker_us"] * count / total for name, count in sampled["functions"].items()}


# -- tables


def _table(parts: dict[str, Split], report: Report) -> Table:
    table = Table("Where one job's time goes, µs", ("where", *parts))
    names = list(dict.fromkeys(name for split in parts.values() for name in split))
    for prefix in ("worker: ", "Postgres: ", "worker waiting"):
        for name in names:
            if name.startswith(prefix):
                table.add(name, *(split.get(name, 0.0) for split in parts.values()))
    for title, key in (("worker CPU", "worker_us"), ("Postgres CPU", "postgres_us"), ("wall", "wall_us")):
        table.add(f"sum: {title}", *(report.measures[name][key] for name in parts))
    table.notes += [
        "no-op jobs, drained by one worker; the sums are from a plain run, their division is from a sampled run",
        "worker waiting: wall time a job in which the worker uses no CPU; Postgres runs at the same time as the worker",
        *report.noise.notes(),
    ]
    return table


def _function_table(report: Report) -> Table:
    names = [name for name in report.measures if isinstance(report.measures[name], dict)]
    table = Table("The busiest Python functions, µs a job", ("function", *names))
    busiest: Split = {}
    for name in names:
        for function, used in report.measures[name]["functions"].items():
            busiest[function] = max(busiest.get(function, 0.0), used)
    for function in sorted(busiest, key=busiest.__getitem__, reverse=True)[:15]:
        table.add(function, *(report.measures[name]["functions"].get(function, 0.0) for name in names))
    table.notes.append("including the C functions that a function calls directly")
    return table


def _read_statements(log: Path, begin: int, database: str, jobs: int) -> dict[str, tuple[float, float]]:
    """Return for each statement the executions a job and the server's microseconds a job."""
    counts: dict[str, int] = {}
    spent: Split = {}
    with log.open("rb") as file:
        file.seek(begin)
        for line in file.read().decode(errors="replace").splitlines():
            if (found := _EXECUTED.search(line)) and found[1] == database:
                name = found[3] or "unnamed"
                counts[name] = counts.get(name, 0) + ("  execute " in line)
                spent[name] = spent.get(name, 0.0) + float(found[2]) * 1000
    return {name: (counts[name] / jobs, spent[name] / jobs) for name in spent}


def _statement_table(statements: dict[str, dict[str, tuple[float, float]]]) -> Table:
    columns = [f"{name}: {what}" for name in statements for what in ("times a job", "µs a job")]
    table = Table("The server's time by statement", ("statement", *columns))
    costs: Split = {}
    for found in statements.values():
        for name, (_, spent) in found.items():
            costs[name] = max(costs.get(name, 0.0), spent)
    for name in sorted(costs, key=costs.__getitem__, reverse=True)[:10]:
        cells = [value for found in statements.values() for value in found.get(name, (0.0, 0.0))]
        table.add(name, *cells)
    table.notes.append(
        "bind and execute, from the server's log; without the commit, with the cost of logging"
    )
    return table


def _step_table(server: Server, options: Options, report: Report) -> Table:
    """Measure the steps of single jobs through an idle queue."""
    count = options.size(500, 40)
    settings = {"concurrency": 10, "trace": True}
    template = _PROFILED.template(server, settings)
    sending = {"senders": 10, "mode": "rate", "n": count, "rate": 50.0, "warmup": 30}
    with (
        server.database(template.name) as dsn,
        _PROFILED.run("work", dsn, settings) as worker,
        _PROFILED.run("produce", dsn, settings, **sending) as producer,
    ):
        worker.wait("ready")
        producer.wait("ready")
        time.sleep(0.5)
        sent = producer.request({"do": "go"}, "produced", timeout=count / 50 + 60)
        wait_drained(dsn, template, 20.0, pause=0.05)
        recorded = worker.request({"do": "report"}, "recorded")
    steps: dict[str, Split] = {**recorded["steps"], "returned": sent["steps"]["returned"]}
    # Both are in the order of the handler entries.
    steps["called"] = dict(zip(steps["entered"], recorded["called"], strict=True))
    table = Table("The steps of one job through an idle queue, µs", ("step", "p50", "p95"))
    for title, begin, end in _STEPS:
        if spans := _spans(steps[begin], steps[end]):
            table.add(title, median(spans), percentile(spans, 0.95))
    table.notes.append("one job each 20 ms; the worker and the sender record the times themselves")
    report.measures["steps"] = [attrs.asdict(table)]
    return table


def _spans(begins: Split, ends: Split) -> list[float]:
    """Return the microseconds between two steps, without the warm-up.

    A span is negative where the dispatcher was claiming already and the job needed no notification: those are left out.
    """
    jobs = [job for job in begins if job in ends and not job.startswith("-")]
    return sorted(span for job in jobs if (span := (ends[job] - begins[job]) * 1e6) >= 0)
