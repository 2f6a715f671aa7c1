"""Starts the two processes that outlive us: the server, and the reaper that stops it."""

import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trioboss.errors import NoPostgres
from trioboss.postgres.embedded import postmaster
from trioboss.postgres.embedded.account import Account, Command
from trioboss.postgres.embedded.binaries import copy_binaries
from trioboss.postgres.embedded.cluster import Cluster
from trioboss.postgres.embedded.folders import make_socket_folder, socket_folder_of
from trioboss.postgres.embedded.locks import FileLock

__all__ = ["LOOPBACK", "ServerOptions", "launch_reaper", "launch_server"]

LOOPBACK = "127.0.0.1"
_SOCKET_ONLY_PORT = 5432  # only a part of the socket's file name
# Below the ports that systems use for outgoing connections, so that none of these takes the port before the server.
_PORTS = range(20000, 32000)


@dataclass(frozen=True)
class ServerOptions:
    """The options of a server, decided by the process that starts it."""

    durable: bool = True
    tcp: bool = False
    settings: Mapping[str, str | int | bool] = field(default_factory=dict)

    def as_arguments(self, socket_folder: Path) -> Iterator[str]:
        """Yield the command line of `postgres`. The caller's settings override ours."""
        chosen: dict[str, str | int | bool] = {
            "unix_socket_directories": f'"{socket_folder}"',
            "unix_socket_permissions": "0700",
            "listen_addresses": LOOPBACK if self.tcp else "",
            "port": _find_free_port() if self.tcp else _SOCKET_ONLY_PORT,
            "max_connections": 200,
            "logging_collector": False,
        }
        if not self.durable:
            # Commits still reach the operating system: a killed server loses nothing, a power failure may lose it all.
            chosen |= {"fsync": False, "full_page_writes": False}
        for name, value in (chosen | dict(self.settings)).items():
            yield "-c"
            yield f"{name}={_format(value)}"


def _format(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _find_free_port() -> int:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            # As Postgres does: a port with old connections in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise NoPostgres(f"tcp: no port of {_PORTS.start} to {_PORTS.stop - 1} is free on {LOOPBACK}")


def launch_server(cluster: Cluster, account: Account, options: ServerOptions, lock: FileLock) -> int:
    """Start a server, with new data if there is none; return the position in the log where its lines begin.

    Every process of the server inherits ``lock``: while it is held, no other process starts a second server.
    """
    cluster.refuse_foreign_data(account)
    programs = _find_programs(cluster, account)
    if not cluster.data.exists():
        cluster.create(programs, account, lock, durable=options.durable)
    socket_folder = make_socket_folder(cluster.data, account)
    cluster.discard_leftovers(socket_folder)
    command: Command = [programs / "postgres", "-D", cluster.data, *options.as_arguments(socket_folder)]
    with cluster.open_log() as log:
        start = log.tell()
        account.launch(command, stdin=subprocess.DEVNULL, output=log.fileno(), inherit=[lock.fileno()])
    return start


def _find_programs(cluster: Cluster, account: Account) -> Path:
    """Return the folder of programs that the account can run."""
    original = cluster.binaries.folder
    if account.uid is None or account.can_run(original / "postgres"):
        return original
    return copy_binaries(cluster.binaries, cluster.home)


def launch_reaper(cluster: Cluster, *, linger: float, keep_data: bool) -> None:
    """Start a reaper unless one is running. The caller must hold a share: a reaper without users stops the server."""
    lock = FileLock.try_exclusive(cluster.reaper_lock)
    if lock is None:
        return
    with lock:
        command: Command = [
            _find_interpreter(),
            "-I",  # without the user's environment and site-packages,
            "-S",  # and without the site module: it starts faster, and nothing of the application is imported
            postmaster.__file__,
            cluster.users_lock,
            cluster.server_lock,
            cluster.data,
            str(linger),
            socket_folder_of(cluster.data),
            *([] if keep_data else [cluster.home]),
        ]
        # As the present user, not as the server's account: it deletes folders of ours.
        Account().launch(command, stdin=lock.fileno(), output=subprocess.DEVNULL)


def _find_interpreter() -> str:
    """Return a Python. In a program that embeds one (mod_wsgi, uWSGI) `sys.executable` is that program."""
    if Path(sys.executable or "").name.startswith(("python", "pypy")):
        return sys.executable
    found = shutil.which("python3")
    if found is None:
        raise NoPostgres("the embedded Postgres needs a python3 on PATH to be stopped: set DATABASE_URL")
    return found
