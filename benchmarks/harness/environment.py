"""Machine, versions and settings of a run. A figure without them cannot be compared with anything."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import pq

from benchmarks.harness.server import Server, run_sql

__all__ = ["as_text", "describe", "describe_machine", "describe_versions", "public_arguments"]

_PRIVATE = frozenset({"--dsn", "--cache", "--results", "--append", "--jdbc", "--peer-python", "--plot"})
_CHANGED = """
    select name, setting || coalesce(' ' || unit, '') from pg_settings
    where source in ('configuration file', 'command line', 'database', 'user')
      and name not in ('DateStyle', 'TimeZone', 'listen_addresses', 'port', 'unix_socket_directories',
                       'unix_socket_permissions', 'log_line_prefix', 'log_timezone', 'default_text_search_config',
                       'lc_messages', 'lc_monetary', 'lc_numeric', 'lc_time', 'dynamic_shared_memory_type')
    order by name"""


def describe(server: Server) -> dict[str, Any]:
    """Return machine, versions and settings as JSON."""
    fsync = run_sql(server.dsn, "show fsync")[0][0]
    commit = run_sql(server.dsn, "show synchronous_commit")[0][0]
    return {
        "machine": describe_machine(None if server.own is None else server.own.data),
        "versions": {
            **describe_versions(),
            "postgres": run_sql(server.dsn, "show server_version")[0][0],
        },
        "postgres_settings": {
            "fsync": fsync,
            "synchronous_commit": commit,
            **dict(run_sql(server.dsn, _CHANGED)),
        },
        "connection": _connection(server.dsn),
        "command": " ".join(["python -m benchmarks", *public_arguments(sys.argv[1:])]),
    }


def describe_machine(data: Path | None) -> dict[str, Any]:
    """Return the machine; `data` is a folder on the disk of the server's data."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "data_on": None if data is None else _file_system(data),
        "load_at_start": os.getloadavg()[0],
    }


def describe_versions() -> dict[str, Any]:
    """Return the versions of what runs in the clients."""
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("trioboss", "trio", "psycopg")},
        "libpq": pq.version_pretty(pq.version()),
        "commit": _commit(),
    }


def as_text(found: dict[str, Any]) -> str:
    """Return the same as three lines of text."""
    machine, versions = found["machine"], found["versions"]
    settings = ", ".join(f"{name} {value}" for name, value in found["postgres_settings"].items())
    return "\n".join(
        (
            f"{machine['cores']} x {machine['cpu']}, {machine['memory_gb']} GB, {machine['system']}, "
            f"data on {machine['data_on']}, load {machine['load_at_start']:.1f} at the start",
            f"trioboss {versions['trioboss']} ({versions['commit']}), Python {versions['python']}, "
            f"trio {versions['trio']}, psycopg {versions['psycopg']}, libpq {versions['libpq']}",
            f"Postgres {versions['postgres']} through {found['connection']}: {settings}",
        )
    )


def public_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments without paths and passwords, because results are published."""
    hides = False
    for argument in arguments:
        name, _, value = argument.partition("=")
        yield "…" if hides else f"{name}=…" if value and name in _PRIVATE else argument
        hides = argument in _PRIVATE


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def _file_system(folder: Path) -> str | None:
    """Return the kind of file system: on a tmpfs a commit costs nothing, and its cost cannot be measured."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return None
    path = str(folder.resolve())
    holding = [(point, kind) for point, kind in mounts if path.startswith(point.rstrip("/") + "/")]
    return max(holding, key=lambda mount: len(mount[0]))[1] if holding else None


def _commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() or None


def _connection(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        kind = "a Unix socket" if connection.info.host.startswith("/") else f"TCP to {connection.info.host}"
        return f"{kind}, TLS {'on' if connection.pgconn.ssl_in_use else 'off'}"
