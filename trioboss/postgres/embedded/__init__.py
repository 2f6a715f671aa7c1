"""A Postgres of our own: found, started on first use, shared by every process that asks, stopped by the last.

Nothing here needs trio or psycopg: the calls block, and trio callers run them in a thread.

    lookup      which database: named, or an embedded server
    server      EmbeddedPostgres: join the running server or start it, hold a share, leave
    cluster     the files of one server: data, locks, log, password, sockets
    binaries    which Postgres programs
    account     as whom they run, for Postgres refuses root
    postmaster  the running server as its pid file shows it, and the reaper that stops it
    locks       file locks that the kernel drops with their holder

Environment variables:

    TRIOBOSS_DSN, DATABASE_URL  a server of your own; then nothing here is started
    TRIOBOSS_HOME               the folder of the data; by default trioboss in the user's data folder
    TRIOBOSS_PG_BIN             the folder of the Postgres programs, instead of those that are found
    TRIOBOSS_PG_USER            for root: the account that runs the server, instead of a user namespace

How a server is shared, with three lock files beside the data directory:

    users   every client holds it shared; the reaper waits to hold it exclusively: then nobody is left
    server  taken to start a server and inherited by all its processes: held as long as one of them lives
    reaper  inherited by the reaper: held as long as it lives

A lock is dropped by the kernel however its holder ends, so no kill, crash or reboot leaves a wrong count.
"""

from trioboss.postgres.embedded.lookup import find_dsn as find_dsn
from trioboss.postgres.embedded.lookup import resolve_dsn as resolve_dsn
from trioboss.postgres.embedded.server import EmbeddedPostgres as EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "find_dsn", "resolve_dsn"]
