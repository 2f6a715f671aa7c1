"""How a command opens its boss: it does no maintenance, and does not migrate a server that was named."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trioboss.api.sync import SyncBoss
from trioboss.errors import StatementFailed, TriobossError
from trioboss.postgres.embedded import find_dsn
from trioboss.postgres.errors import explain_database_error, is_permission_denied

__all__ = ["Command", "explain", "open_sync", "with_boss"]

Command = Callable[[SyncBoss, argparse.Namespace], int]


@contextmanager
def open_sync(args: argparse.Namespace, *, migrate: bool | None = None) -> Iterator[SyncBoss]:
    """Open a blocking boss for a command: trio takes longer to import than most commands to run.

    Only an embedded server is migrated without being asked to: nobody else does it.
    """
    if migrate is None:
        migrate = find_dsn(args.dsn) is None
    with SyncBoss(args.dsn, schema=args.schema, migrate=migrate) as boss:
        yield boss


def with_boss(command: Command) -> Callable[[argparse.Namespace], int]:
    """Make a command of a function that needs a boss."""

    def run(args: argparse.Namespace) -> int:
        with open_sync(args) as boss:
            return command(boss, args)
        raise AssertionError

    return run


def explain(error: Exception) -> str | None:
    """An error of ours, or of the database, in one sentence; None for any other."""
    if isinstance(error, TriobossError) and not isinstance(error, StatementFailed):
        return str(error)
    text = explain_database_error(error)
    return f"{text}: see `trioboss grants`" if is_permission_denied(error) else text
