"""The Postgres that is measured: one of our own, durable, on a loopback port without TLS; or the one --dsn names.

Every run has a database of its own, cloned from a template after a CHECKPOINT, so that no run pays for another.
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
from benchmarks.harness.progress import say
from trioboss.postgres.databases import create_database, drop_database
from trioboss.postgres.embedded import EmbeddedPostgres
from trioboss.postgres.embedded.postmaster import find_postmaster

__all__ = ["Server", "Template", "open_server", "run_sql"]

# As on a small real server; everything else is Postgres's default. The prefix tells whose statement was logged.
SETTINGS: dict[str, str | int | bool] = {
    "shared_buffers": "512MB",
    "max_connections": 200,
    "log_line_prefix": "%m [%p] @%d ",
    "log_checkpoints": False,
}


def run_sql(dsn: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute statements, each in a transaction of its own; return the rows of the last one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return rows


@attrs.frozen
class Template:
    """A database to clone, and what its maker said about it."""

    name: str
    facts: Mapping[str, Any]


@attrs.define(eq=False)
class Server:
    """Where databases for runs come from."""

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
        """What the server logs, if we can read it."""
        return None if self.own is None else self.own.log

    @property
    def postmaster(self) -> int | None:
        """The process id of the server, if it runs on this machine."""
        if self.own is None:
            return self._local
        with contextlib.suppress(OSError):
            return int((self.own.data / "postmaster.pid").read_text().split()[0])
        return None

    def name(self, dsn: str) -> str:
        """The name of the database of one of our dsns."""
        return str(conninfo_to_dict(dsn)["dbname"])

    def _dsn_of(self, name: str) -> str:
        before, _, after = self.dsn.partition("?")
        return f"{before.rsplit('/', 1)[0]}/{name}?{after}"

    def template(
        self, key: str, make: Callable[[str], Mapping[str, Any] | None], parent: str | None = None
    ) -> Template:
        """A database that `make` filled: made at the first call, and never connected to again."""
        if key not in self._templates:
            say(f"template {key}")
            name = f"{self._prefix}_t{next(self._numbers)}"
            create_database(self.dsn, name, parent)
            facts = make(self._dsn_of(name)) or {}
            run_sql(self._dsn_of(name), "vacuum (freeze, analyze)")
            self._templates[key] = Template(name, facts)
        return self._templates[key]

    def migrated(self) -> str:
        """The name of the template with nothing but trioboss's schema."""
        return self.template("trioboss", _migrate).name

    @contextlib.contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """A fresh database, by default with trioboss's schema; gives its dsn, and drops it at the end."""
        source = template or self.migrated()
        name = f"{self._prefix}_{next(self._numbers)}"
        self._clone(name, source)
        try:
            yield self._dsn_of(name)
        finally:
            drop_database(self.dsn, name)

    def _clone(self, name: str, source: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            # Copying files is not logged, so the server has nothing to catch up with during the run.
            strategy = " strategy file_copy" if connection.info.server_version >= 150000 else ""
            statement = sql.SQL("create database {} template {}" + strategy)
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(source)))
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                connection.execute("checkpoint")

    def drop_template(self, key: str) -> None:
        """Give back the room of a template that is no longer needed."""
        if (found := self._templates.pop(key, None)) is not None:
            drop_database(self.dsn, found.name)

    def drop_templates(self) -> None:
        """Leave nothing behind in somebody else's server."""
        for key in list(self._templates):
            self.drop_template(key)

    def crash(self) -> float:
        """Stop the server at once, as a crash would, and start it again; return when it was killed."""
        if self.own is None or self.postmaster is None:
            raise RuntimeError("crash: only our own server is stopped; run without --dsn")
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
    """The parent of a backend of ours, if both run on this machine."""
    with psycopg.connect(dsn) as connection:
        stat = Path(f"/proc/{connection.info.backend_pid}/stat")
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except OSError:
            return None
        return int(fields.split()[1]) if name.endswith("(postgres") else None


@contextlib.contextmanager
def open_server(dsn: str | None, settings: Mapping[str, str | int | bool] | None = None) -> Iterator[Server]:
    """The server that is named, or one of our own, with settings of its own, for the length of the block."""
    if dsn is not None:
        server = Server(dsn if "://" in dsn else _as_uri(dsn))
        try:
            yield server
        finally:
            server.drop_templates()
        return
    # A port of our choice, because it has to stay the same when the server is restarted.
    chosen = {**SETTINGS, **(settings or {}), "port": _find_free_port()}
    with EmbeddedPostgres(keep_data=False, durable=True, tcp=True, settings=chosen) as own:
        yield Server(_portable(own.dsn), own)


def _find_free_port() -> int:
    # Below those that systems hand out for outgoing connections, so that it is still free after a restart.
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")


def _as_uri(conninfo: str) -> str:
    """The form that asyncpg and Node read as well. A folder of sockets goes where they look for it."""
    found = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    database, user = found.pop("dbname", "postgres"), found.pop("user", "")
    password = found.pop("password", "")
    who = f"{quote(user)}{':' + quote(password) if password else ''}"
    return f"postgresql://{who}@/{quote(database)}?{urlencode(found, safe='/')}"


def _portable(dsn: str) -> str:
    """The dsn with its password in it: asyncpg and Node read no passfile from a dsn."""
    found = conninfo_to_dict(dsn)
    password = Path(str(found["passfile"])).read_text().strip().rsplit(":", 1)[1]
    place = f"{found['host']}:{found['port']}/{found['dbname']}"
    return f"postgresql://{found['user']}:{quote(password)}@{place}?sslmode=disable"
