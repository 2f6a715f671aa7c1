"""Decides which database is used: a named one, or an embedded server."""

import contextlib
import logging
import os
from collections.abc import Iterator
from importlib import import_module

__all__ = ["find_dsn", "resolve_dsn"]

_logger = logging.getLogger("trioboss.embedded")


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
    with import_module("trioboss.postgres.embedded.server").EmbeddedPostgres() as server:
        # A program that was meant for another database must not work on an empty one unnoticed.
        _logger.warning(
            "no database is named (dsn, TRIOBOSS_DSN, DATABASE_URL): using an embedded Postgres, its data is in %s",
            server.home,
        )
        yield server.dsn
