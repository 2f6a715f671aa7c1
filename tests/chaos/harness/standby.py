"""A synchronous standby of the server of a run, and the dsn that names both."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.harness.server import Server, run_sql
from trioboss.postgres.embedded.account import Command, choose_account
from trioboss.postgres.embedded.binaries import find_binaries

__all__ = ["Standby", "open_standby", "with_standby"]

_TIMEOUT = 60.0  # seconds until the standby must answer
_IS_SYNC = "select 1 from pg_stat_replication where sync_state = 'sync'"


def with_standby(dsn: str, port: int | None) -> str:
    """Return a dsn that names a server and its standby, of which the client uses the one that accepts writes."""
    if port is None:
        return dsn
    first = conninfo_to_dict(dsn)["port"]
    return make_conninfo(
        dsn, host="127.0.0.1,127.0.0.1", port=f"{first},{port}", target_session_attrs="read-write"
    )


@attrs.frozen
class Standby:
    """A server that follows another one."""

    data: Path
    port: int
    dsn: str

    def promote(self) -> None:
        """Make it a server that accepts writes."""
        run_sql(self.dsn, "select pg_promote()", "alter system reset synchronous_standby_names")
        run_sql(self.dsn, "select pg_reload_conf()")


@contextlib.contextmanager
def open_standby(server: Server, folder: Path, spaces: dict[str, str]) -> Iterator[Standby]:
    """Run a standby of a server. Commits of the server wait for it. `spaces`: where its copies of tablespaces are."""
    account, programs = choose_account(), find_binaries().folder
    data = folder / "standby"
    data.mkdir(mode=0o700)
    account.chown(data)
    mapping = [f"--tablespace-mapping={old}={new}" for old, new in spaces.items()]
    copy: Command = [
        *(programs / "pg_basebackup", "-d", server.dsn, "-D", data, "-X", "stream", "-R", "-c", "fast"),
        *mapping,
    ]
    answer = account.run(copy)
    if answer.returncode:
        raise RuntimeError(f"pg_basebackup: {answer.stderr}")
    port = _find_free_port()
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "max_connections": 200,
        "track_commit_timestamp": "on",
        "wal_retrieve_retry_interval": "200ms",
        "max_notify_queue_pages": 64,
    }
    arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (folder / "standby.log").open("wb") as log:
        account.launch(
            [programs / "postgres", "-D", data, *arguments], stdin=subprocess.DEVNULL, output=log.fileno()
        )
    standby = Standby(data, port, make_conninfo(server.dsn, port=port))
    try:
        run_sql(server.dsn, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
        _wait_for_sync(server.dsn)
        yield standby
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)


def _wait_for_sync(dsn: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not run_sql(dsn, _IS_SYNC):
        if time.monotonic() > deadline:
            raise RuntimeError("the standby does not follow")
        time.sleep(0.1)


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
