"""The consumption of programs that have nothing to do: CPU, wake-ups, memory, connections, statements."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import attrs
import psycopg

from benchmarks.harness.meters import Meter, children_of, cpu_of, resident_of, wakeups_of
from benchmarks.harness.percentiles import median
from benchmarks.harness.processes import Program
from benchmarks.harness.server import Server, run_sql

__all__ = ["SETTLING", "IdleProgram", "count_statements", "log_statements", "observe"]

SETTLING = 20.0
"""Seconds from its start until a worker is idle: before that, maintenance polls more often, and prunes."""
_SAMPLE_INTERVAL = 2.0  # seconds between samples: pools replace their connections between them
_BACKENDS = "select datname, pid from pg_stat_activity where backend_type = 'client backend'"


@attrs.frozen
class IdleProgram:
    """An idle program, and the database that only this program uses."""

    name: str
    program: Program
    database: str


@attrs.define
class _CpuUse:
    """CPU seconds of processes that start and end during the observation."""

    first: dict[int, float] = attrs.field(factory=dict)
    last: dict[int, float] = attrs.field(factory=dict)

    def sample(self, pids: Sequence[int], *, at_start: bool) -> None:
        for pid in pids:
            self.last[pid] = cpu_of(pid)
            # A process that started later has used all of its CPU time during the observation.
            self.first.setdefault(pid, self.last[pid] if at_start else 0.0)

    @property
    def seconds(self) -> float:
        return sum(self.last[pid] - first for pid, first in self.first.items())


@attrs.define
class _Tally:
    """The samples of one program."""

    observed: IdleProgram
    worker: _CpuUse = attrs.field(factory=_CpuUse)
    backends: _CpuUse = attrs.field(factory=_CpuUse)
    connections: list[int] = attrs.field(factory=list)
    woken: int = 0

    def sample(self, pids: Sequence[int], *, at_start: bool) -> None:
        pid = self.observed.program.pid
        self.worker.sample([pid, *children_of(pid)], at_start=at_start)
        self.backends.sample(pids, at_start=at_start)
        self.connections.append(len(pids))
        if at_start:
            self.woken = wakeups_of(pid)

    def result(self, seconds: float) -> dict[str, Any]:
        pid = self.observed.program.pid
        return {
            "worker_cpu": self.worker.seconds,
            "postgres_cpu": self.backends.seconds,
            "wakeups_a_minute": (wakeups_of(pid) - self.woken) / seconds * 60,
            "connections": median(self.connections),
            "resident_mb": resident_of(pid) / 2**20,
            "seconds": seconds,
        }


def observe(server: Server, programs: Sequence[IdleProgram], seconds: float) -> dict[str, dict[str, Any]]:
    """Observe programs side by side; return what each one used, by name, with the `noise`."""
    tallies = [_Tally(program) for program in programs]
    end = time.monotonic() + seconds
    at_start = True
    with (
        psycopg.connect(server.dsn, autocommit=True) as connection,
        Meter(server.postmaster, lambda: sum(each.program.cpu() for each in programs)) as meter,
    ):
        while True:
            backends: defaultdict[str, list[int]] = defaultdict(list)
            for database, pid in connection.execute(_BACKENDS):
                backends[database].append(pid)
            for tally in tallies:
                tally.sample(backends[tally.observed.database], at_start=at_start)
            at_start = False
            if (left := end - time.monotonic()) <= 0:
                break
            time.sleep(min(_SAMPLE_INTERVAL, left))
        meter.stop()
        return {
            tally.observed.name: {**tally.result(meter.seconds), "noise": meter.noise} for tally in tallies
        }


def log_statements(server: Server, database: str) -> None:
    """Let the server log every statement in this database, for sessions that begin after this call."""
    run_sql(server.dsn, f'alter database "{database}" set log_min_duration_statement = 0')


def count_statements(server: Server, databases: Sequence[str], seconds: float) -> dict[str, float] | None:
    """Return the statements a minute in each database; None if the server's log cannot be read.

    BEGIN, COMMIT and the empty statements by which pools check their connections are counted, too.
    """
    if server.log is None:
        return None
    prefix = run_sql(server.dsn, "show log_line_prefix")[0][0]
    if "@%d " not in prefix:
        raise RuntimeError(f"log_line_prefix is {prefix!r}: it must have '@%d ', the database of a statement")
    begin = server.log.stat().st_size
    time.sleep(seconds)
    with server.log.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode(errors="replace").splitlines()
    # The extended protocol logs parse, bind and execute; only execute is counted.
    ran = [
        line for line in lines if "LOG:  duration" in line and (" statement: " in line or " execute " in line)
    ]
    return {name: sum(f"@{name} " in line for line in ran) / seconds * 60 for name in databases}
