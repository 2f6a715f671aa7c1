"""How long until a job starts after something broke?

listener  the listener's connection is terminated; and it becomes silent without being closed
restart   the server is restarted immediately
kill      a worker is killed with SIGKILL while it runs the job

`--only` takes parts of the row names. Takes about 3 minutes.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

import trioboss
from benchmarks.adapters.base import QUEUE
from benchmarks.harness.options import Options
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.processes import Program
from benchmarks.harness.progress import log
from benchmarks.harness.proxy import run_proxy
from benchmarks.harness.queue_programs import TRIOBOSS
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server, run_sql
from benchmarks.harness.tables import Spread, Table

__all__ = ["measure"]

_WORKER: dict[str, Any] = {"concurrency": 10}
_TIMEOUT = 60.0
_LATER = f"> {_TIMEOUT:g}"
# The listening connection of a boss also holds the advisory lock that proves its presence.
_LISTENER = """
    select distinct a.pid, a.client_port from pg_locks l join pg_stat_activity a using (pid)
    where l.locktype = 'advisory' and a.datname = current_database()"""


class _NotStarted(Exception):
    """The job did not start in time."""


@attrs.frozen
class _Fault:
    name: str
    promise: str
    run: Callable[[Server], float]


def measure(server: Server, options: Options) -> Report:
    """Cause each fault, and measure how long a job waits."""
    report = Report("faults")
    faults = [each for each in _FAULTS if options.includes(each.name)]
    if server.own is None:
        faults = [each for each in faults if each.run is not _crash]
    results: dict[str, list[float | None]] = {each.name: [] for each in faults}
    for repeat in range(options.repeats):
        for each in faults:
            seconds = _run(each, server)
            results[each.name].append(seconds)
            log(
                f"{repeat + 1}/{options.repeats} {each.name}: {_LATER if seconds is None else f'{seconds:.2f}'} s"
            )
    report.tables.append(_table(faults, results, server))
    bars = [Bar(name, spread.median, spread.low, spread.high) for name, spread in _spreads(results)]
    report.plots.append(Bars("Until a job starts", "s", bars))
    report.measures |= results
    return report


def _run(fault: _Fault, server: Server) -> float | None:
    """Return the seconds until the job started; None if it did not start in time."""
    try:
        return fault.run(server)
    except _NotStarted:
        return None


def _table(faults: list[_Fault], results: dict[str, list[float | None]], server: Server) -> Table:
    table = Table("Seconds until a job starts", ("after", "seconds", "not started", "promised"))
    spreads = dict(_spreads(results))
    for each in faults:
        failed = sum(seconds is None for seconds in results[each.name])
        table.add(each.name, spreads.get(each.name, _LATER), failed, each.promise)
    if any(None in found for found in results.values()):
        table.notes.append(f"not started: not within {_TIMEOUT:g} s")
    if server.own is None:
        table.notes.append("the restart was left out: only the benchmark's own server is crashed")
    return table


def _spreads(results: dict[str, list[float | None]]) -> list[tuple[str, Spread]]:
    started = {name: [value for value in values if value is not None] for name, values in results.items()}
    return [(name, Spread.of(values)) for name, values in started.items() if values]


def _send(dsn: str) -> float:
    """Send a job, and try again until it succeeds; return the time of the call that succeeded."""
    deadline = time.monotonic() + _TIMEOUT
    while True:
        began = time.monotonic()
        try:
            with trioboss.SyncBoss(dsn, migrate=False) as boss:
                boss.send(QUEUE, {"i": 0, "t": began, "due": 0})
                return began
        except trioboss.DatabaseUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _wait_entered(worker: Program, count: int) -> float:
    """Wait for so many handler entries; return the time of the last one."""
    deadline = time.monotonic() + _TIMEOUT
    while worker.entries < count:
        if time.monotonic() > deadline:
            raise _NotStarted
        time.sleep(0.01)
    entered: list[float] = worker.request({"do": "report"}, "recorded")["entered"]
    return entered[count - 1]


def _warm_up(worker: Program, dsn: str) -> None:
    worker.wait("ready")
    _send(dsn)
    _wait_entered(worker, 1)
    time.sleep(0.5)


def _listener_dies(server: Server) -> float:
    with (
        server.database(TRIOBOSS.template(server, _WORKER).name) as dsn,
        TRIOBOSS.run("work", dsn, _WORKER, progress=True) as worker,
    ):
        _warm_up(worker, dsn)
        ((pid, _),) = run_sql(dsn, _LISTENER)
        run_sql(dsn, f"select pg_terminate_backend({pid})")
        sent = _send(dsn)
        return _wait_entered(worker, 2) - sent


def _listener_goes_silent(server: Server) -> float:
    with (
        server.database(TRIOBOSS.template(server, _WORKER).name) as dsn,
        run_proxy(dsn) as proxy,
        TRIOBOSS.run("work", proxy.dsn, _WORKER, progress=True) as worker,
    ):
        _warm_up(worker, dsn)
        ((_, port),) = run_sql(dsn, _LISTENER)
        proxy.silent_ports.add(port)
        sent = _send(dsn)
        return _wait_entered(worker, 2) - sent


def _crash(server: Server) -> float:
    with (
        server.database(TRIOBOSS.template(server, _WORKER).name) as dsn,
        TRIOBOSS.run("work", dsn, _WORKER, progress=True) as worker,
    ):
        _warm_up(worker, dsn)
        server.crash()
        sent = _send(dsn)
        return _wait_entered(worker, 2) - sent


def _worker_is_killed(server: Server) -> float:
    settings = {**_WORKER, "seconds": 3600.0}
    with (
        server.database(TRIOBOSS.template(server, settings).name) as dsn,
        TRIOBOSS.run("work", dsn, settings, progress=True) as victim,
    ):
        _warm_up(victim, dsn)
        with TRIOBOSS.run("work", dsn, settings, progress=True) as other:
            other.wait("ready")
            time.sleep(1.0)
            killed = time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
            return _wait_entered(other, 1) - killed


_FAULTS = (
    _Fault("end of the listener's connection, to the start of a job sent then", "", _listener_dies),
    _Fault("half-open listener, to the start of a job sent then", "10 s", _listener_goes_silent),
    _Fault("immediate restart of the server, from the first send that succeeds", "", _crash),
    _Fault("kill -9 of a worker, to the second start of its running job", "10 s", _worker_is_killed),
)
