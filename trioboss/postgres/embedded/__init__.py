"""A Postgres server of our own, started on first use, shared by all processes of a user, stopped after the last one.

Nothing here needs trio or psycopg: the calls block, and trio callers run them in a thread.

lookup      decides which database is used: a named one, or an embedded server
server      EmbeddedPostgres: joins the running server or starts it, and holds a share of it
launch      starts the two processes that outlive us: the server, and the reaper that stops it
postmaster  the running server according to its pid file, and the program of the reaper
cluster     the files of one server: data, locks, log, password
folders     the folders of a server: for its data and for its sockets
binaries    finds the Postgres programs
account     the account that runs them, because Postgres refuses root
locks       file locks that the kernel releases when the process that has them ends

Environment variables:

    TRIOBOSS_DSN, DATABASE_URL  a server of your own; then nothing here is started
    TRIOBOSS_HOME               the folder of the data; by default trioboss in the user's data folder
    TRIOBOSS_PG_BIN             the folder of the Postgres programs, instead of those that are found
    TRIOBOSS_PG_USER            for root: the account that runs the server, instead of a user namespace

A server is shared by means of three lock files beside the data directory:

    .users   each client holds it shared; the reaper waits to hold it exclusively, which means that no client is left
    .server  taken to start a server and inherited by all its processes: held as long as one of them runs
    .reaper  inherited by the reaper: held as long as it runs

The kernel releases a lock however the process that has it ends, so no kill, crash or reboot leaves a wrong
count of users.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trioboss.postgres.embedded.lookup import find_dsn as find_dsn
from trioboss.postgres.embedded.lookup import resolve_dsn as resolve_dsn

if TYPE_CHECKING:
    from trioboss.postgres.embedded.server import EmbeddedPostgres as EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "find_dsn", "resolve_dsn"]

if not TYPE_CHECKING:  # programs with a server of their own need no embedded one, and its imports take time

    def __getattr__(name: str) -> Any:
        if name == "EmbeddedPostgres":
            return import_module(f"{__name__}.server").EmbeddedPostgres
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
