"""The floor: what the same Postgres reaches without a queue, by pgbench and by blocking psycopg."""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.harness.meters import Meter
from benchmarks.harness.percentiles import curve, summarize
from benchmarks.harness.processes import python_module
from benchmarks.harness.queue_programs import QueueProgram
from benchmarks.harness.runs import measure_latency
from benchmarks.harness.server import Server
from benchmarks.programs.blocking_psycopg import CLAIM, COMPLETE, SCHEMA
from trioboss.postgres.embedded.binaries import find_binaries

__all__ = ["floor_bulk", "floor_drain", "floor_latency", "floor_sends"]

_BLOCKING = QueueProgram("blocking psycopg", tuple(python_module("benchmarks.programs.blocking_psycopg")))
_INSERT = """insert into job (data) values ('{"i": 1, "t": 0, "due": 0}');\n"""
_TPS = re.compile(r"tps = ([\d.]+)")

Result = dict[str, Any]


def floor_latency(server: Server, count: int, rate: float) -> Result:
    """Two blocking programs: one inserts and notifies, the other listens, claims and completes."""
    result = measure_latency(server, _BLOCKING, {}, count=count, rate=rate)
    found = attrs.asdict(summarize(result["ms"]))
    return {**found, "curve_ms": curve(result["ms"]), "noise": result["noise"]}


def _table(server: Server) -> str:
    def make(dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SCHEMA.encode())

    return server.template("a bare table", make).name


def floor_sends(server: Server, seconds: float) -> Result:
    """pgbench: prepared INSERTs, each committed, by one client and by ten."""
    with Meter(server.postmaster) as meter:
        rates = {f"rate_{clients}": _pgbench(server, _INSERT, clients, seconds) for clients in (1, 10)}
    return {**rates, "noise": meter.noise}


def _pgbench(server: Server, script: str, clients: int, seconds: float) -> float:
    bundled = find_binaries().folder / "pgbench"
    program = str(bundled) if bundled.exists() else shutil.which("pgbench")
    if program is None:
        raise FileNotFoundError("pgbench is not installed")
    with server.database(_table(server)) as dsn, tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "script.sql")
        file.write_text(script)
        found = conninfo_to_dict(dsn)
        place = ["-h", str(found["host"]), "-p", str(found["port"]), "-U", str(found["user"])]
        how = ["-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(max(1, round(seconds)))]
        answer = subprocess.run(
            [program, *place, *how, "-f", str(file), str(found["dbname"])],
            env={
                "PGPASSWORD": str(found.get("password", "")),
                "PGSSLMODE": str(found.get("sslmode", "prefer")),
            },
            capture_output=True,
            text=True,
            check=True,
        )
    match = _TPS.search(answer.stdout)
    assert match is not None
    return float(match[1])


def floor_bulk(server: Server, count: int) -> Result:
    """A bare COPY."""
    lines = b"".join(b'{"i": %d, "t": 0, "due": 0}\n' % i for i in range(count))
    with (
        server.database(_table(server)) as dsn,
        psycopg.connect(dsn) as connection,
        Meter(server.postmaster) as meter,
    ):
        began = time.perf_counter()
        with connection.cursor().copy("copy job (data) from stdin") as copy:
            copy.write(lines)
        connection.commit()
        seconds = time.perf_counter() - began
    return {"rate": count / seconds, "noise": meter.noise}


def floor_drain(server: Server, batch: int, jobs: int) -> Result:
    """One blocking connection that claims a batch and completes it, each in its own transaction."""

    def make(dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(
                """insert into job (data) select jsonb_build_object('i', i, 't', 0, 'due', 0)
                   from generate_series(1, %s) i""",
                [jobs + 10 * batch],
            )

    template = server.template(f"a bare table, {jobs + 10 * batch:,} jobs", make, _table(server)).name
    with server.database(template) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        _repeat(8, lambda: _claim_and_complete(connection, batch))
        with Meter(server.postmaster) as meter:
            seconds = _repeat(jobs // batch, lambda: _claim_and_complete(connection, batch))
    done = jobs // batch * batch
    return {"rate": done / seconds, "postgres_us": meter.postgres / done * 1e6, "noise": meter.noise}


def _claim_and_complete(connection: psycopg.Connection[Any], batch: int) -> None:
    ids = [row[0] for row in connection.execute(CLAIM, [batch], prepare=True)]
    connection.execute(COMPLETE, [ids], prepare=True)


def _repeat(times: int, call: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - began
