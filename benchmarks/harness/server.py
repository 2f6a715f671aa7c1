"""The Postgres that is measured: the benchmark's own, durable, on a loopback port without TLS; or the one of --dsn.

Every run has a database of its own, cloned from a template and followed by a CHECKPOINT, so that a run does not pay for
the dead rows, the statistics or the dirty pages of an earlier one.
"""

import contextlib
import itertools
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import attrs
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

import trioboss
from benchmarks.harness.progress import log
from trioboss.postgres.databases import create_database, drop_database
from trioboss.postgres.embedded import EmbeddedPostgres
from trioboss.postgres.embedded.postmaster import find_postmaster

__all__ = ["Server", "Template", "open_server", "run_sql"]

# As on a small production server; everything else is Postgres's default. The prefix names the database of a statement.
SETTINGS: dict[str, str | int | bool] = {
    "shared_buffers": "512MB",
    "max_connections": 200,
    "log_line_prefix": "%m [%p] @%d ",
    "log_checkpoints": False,
}


def run_sql(dsn: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute statements, each in its own transaction; return the rows of the last one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return rows


@attrs.frozen
class Template:
    """A database to clone, and the facts that the program that filled it returned."""

    name: str
    facts: Mapping[str, Any]


@attrs.define(eq=False)
class Server:
    """A Postgres server, and the databases that runs get from it."""

    dsn: str
    own: EmbeddedPostgres | None = None
    _templates: dict[str, Template] = attrs.field(factory=dict, init=False)
    _numbers: Iterator[int] = attrs.field(factory=itertools.count, init=False)
    _prefix: str = attrs.field(factory=lambda: f"bench_{os.getpid()}", init=False)
    _local: int | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if self.own is None:
            with contextlib.suppress(psycopg.OperationalError):
                self._local = _find_postmaster(self.dsn)

    @property
    def log(self) -> Path | None:
        """The server's log file, if this process can read it."""
        return None if self.own is None else self.own.log

    @property
    def postmaster(self) -> int | None:
        """The process id of the server, if it runs on this machine."""
        if self.own is None:
            return self._local
        with contextlib.suppress(OSError):
            return int((self.own.data / "postmaster.pid").read_text().split()[0])
        return None

    def wal_position(self) -> int:
        """Return the position of the WAL in bytes: the difference of two readings is what was written between them."""
        return int(run_sql(self.dsn, "select pg_current_wal_insert_lsn() - '0/0'")[0][0])

    def name(self, dsn: str) -> str:
        """Return the name of the database of a dsn."""
        return str(conninfo_to_dict(dsn)["dbname"])

    def _dsn_of(self, name: str) -> str:
        before, _, after = self.dsn.partition("?")
        return f"{before.rsplit('/', 1)[0]}/{name}?{after}"

    def template(
        self, key: str, make: Callable[[str], Mapping[str, Any] | None], parent: str | None = None
    ) -> Template:
        """Return a database that `make` filled. It is created by the first call and never connected to again."""
        if key not in self._templates:
            log(f"template {key}")
            name = f"{self._prefix}_t{next(self._numbers)}"
            create_database(self.dsn, name, parent)
            facts = make(self._dsn_of(name)) or {}
            run_sql(self._dsn_of(name), "vacuum (freeze, analyze)")
            self._templates[key] = Template(name, facts)
        return self._templates[key]

    def migrated(self) -> str:
        """Return the name of the template that has trioboss's schema and no jobs."""
        return self.template("trioboss", _migrate).name

    @contextlib.contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """Yield the dsn of a fresh database, by default with trioboss's schema, and drop it at the end."""
        source = template or self.migrated()
        name = f"{self._prefix}_{next(self._numbers)}"
        self._clone(name, source)
        try:
            yield self._dsn_of(name)
        finally:
            drop_database(self.dsn, name)

    def _clone(self, name: str, source: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            # Copied files are not in the WAL, so the server has nothing left to write during the run.
            strategy = " strategy file_copy" if connection.info.server_version >= 150000 else ""
            statement = sql.SQL("create database {} template {}" + strategy)
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(source)))
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                connection.execute("checkpoint")

    def drop_template(self, key: str) -> None:
        """Drop a template that is no longer needed."""
        if (found := self._templates.pop(key, None)) is not None:
            drop_database(self.dsn, found.name)

    def drop_templates(self) -> None:
        """Drop all templates: a server of --dsn is left as it was found."""
        for key in list(self._templates):
            self.drop_template(key)

    def crash(self) -> float:
        """Stop the server immediately, as a crash does, and start it again; return the time of the crash."""
        if self.own is None or self.postmaster is None:
            raise RuntimeError("crash: only the benchmark's own server is crashed; run without --dsn")
        pid = self.postmaster
        crashed_at = time.monotonic()
        os.kill(pid, signal.SIGQUIT)
        while find_postmaster(self.own.data) is not None and time.monotonic() < crashed_at + 20:
            time.sleep(0.002)
        self.own.ensure_running()
        return crashed_at


def _migrate(dsn: str) -> None:
    with trioboss.SyncBoss(dsn):
        pass


def _find_postmaster(dsn: str) -> int | None:
    """Return the parent of one of our backends, if it runs on this machine."""
    with psycopg.connect(dsn) as connection:
        stat = Path(f"/proc/{connection.info.backend_pid}/stat")
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except OSError:
            return None
        return int(fields.split()[1]) if name.endswith("(postgres") else None


@contextlib.contextmanager
def open_server(dsn: str | None, settings: Mapping[str, str | int | bool] | None = None) -> Iterator[Server]:
    """Yield the server of the dsn, or start one with these settings, for the length of the block."""
    if dsn is not None:
        server = Server(dsn if "://" in dsn else _as_uri(dsn))
        try:
            yield server
        finally:
            server.drop_templates()
        return
    # The port is chosen here, because it must stay the same when the server is restarted.
    chosen = {**SETTINGS, **(settings or {}), "port": _find_free_port()}
    with EmbeddedPostgres(keep_data=False, durable=True, tcp=True, settings=chosen) as own:
        yield Server(_portable(own.dsn), own)


def _find_free_port() -> int:
    # Below the ports that the system gives to outgoing connections, so that it is still free after a restart.
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")


def _as_uri(conninfo: str) -> str:
    """Return the form that asyncpg and Node accept, too; a socket folder becomes the parameter `host`."""
    found = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    database, user = found.pop("dbname", "postgres"), found.pop("user", "")
    password = found.pop("password", "")
    who = f"{quote(user)}{':' + quote(password) if password else ''}"
    return f"postgresql://{who}@/{quote(database)}?{urlencode(found, safe='/')}"


def _portable(dsn: str) -> str:
    """Return the dsn with its password, because asyncpg and Node do not read a passfile from a dsn."""
    found = conninfo_to_dict(dsn)
    password = Path(str(found["passfile"])).read_text().strip().rsplit(":", 1)[1]
    place = f"{found['host']}:{found['port']}/{found['dbname']}"
    return f"postgresql://{found['user']}:{quote(password)}@{place}?sslmode=disable"
