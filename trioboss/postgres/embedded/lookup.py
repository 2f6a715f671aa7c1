"""Decides which database is used: a named one, or an embedded server."""

import contextlib
import os
from collections.abc import Iterator

from trioboss.postgres.embedded.server import EmbeddedPostgres

__all__ = ["find_dsn", "resolve_dsn"]


def find_dsn(dsn: str | None = None) -> str | None:
    """Return the dsn that was given as argument, in TRIOBOSS_DSN or in DATABASE_URL, or None."""
    # An empty variable counts as unset.
    return dsn or os.environ.get("TRIOBOSS_DSN") or os.environ.get("DATABASE_URL") or None


@contextlib.contextmanager
def resolve_dsn(dsn: str | None = None) -> Iterator[str]:
    """Give the dsn of the named database, else of an embedded server that is kept for the length of the block.

    Each block holds a share of its own. Entering may start a server and leaving may start its reaper: trio callers do
    both in a thread, not necessarily the same one.
    """
    if (named := find_dsn(dsn)) is not None:
        yield named
        return
    with EmbeddedPostgres() as server:
        yield server.dsn
