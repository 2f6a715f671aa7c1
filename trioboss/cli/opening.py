"""How a command opens its boss: it does no maintenance, and does not migrate a server that was named."""

import argparse
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from trioboss.api.sync import SyncBoss
from trioboss.errors import StatementFailed, TriobossError, UsageError
from trioboss.postgres.embedded import find_dsn
from trioboss.postgres.errors import explain_database_error, is_permission_denied, lacks_privilege

__all__ = ["Command", "exit_code", "explain", "open_sync", "with_boss"]

# Before Postgres 16: must be member of, must have admin option on.
_MEMBERSHIP = re.compile(
    r'(?:permission denied to grant|must be able to SET|must be member of|must have admin option on) role ("[^\n]*")',
    re.IGNORECASE,
)

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
            try:
                return command(boss, args)
            except Exception as error:
                if lacks_privilege(error):
                    _refuse(boss, args.command, error)
                raise
        raise AssertionError

    return run


def _refuse(boss: SyncBoss, command: str, error: Exception) -> None:
    """Name the role that may not run a command: Postgres only names the first table or function that it refused."""
    try:
        # Imported here: only a refusal needs it.
        found = import_module("trioboss.cli.role_kinds").find_role_kind(boss)
    except TriobossError:
        return  # a role that may not even use the schema
    kind = f", {found.text}," if found.text else ""
    text = f"role {found.role!r}{kind} may not run `trioboss {command}` ({_describe(error)})"
    raise StatementFailed(text) from (error.__cause__ or error)


def explain(error: Exception) -> str | None:
    """An error of ours, or of the database, in one sentence; None for any other."""
    if isinstance(error, TriobossError) and not isinstance(error, StatementFailed):
        return str(error)
    text = _describe(error)
    return f"{text}: {_remedy(text)}" if text is not None and is_permission_denied(error) else text


def _describe(error: Exception) -> str | None:
    """An error of the database: our own message, where there is one, tells more than that of the server."""
    own = isinstance(error, StatementFailed) and not str(error).startswith("Postgres refused a statement")
    return str(error) if own else explain_database_error(error)


def _remedy(text: str) -> str:
    """The remedy for a missing right: the owner of the schema migrates, and gives the others their rights."""
    if "permission denied for database" in text:
        return "run `trioboss migrate` as a role that may create schemas"
    if found := _MEMBERSHIP.search(text):
        return f"as a superuser, or as the role that has created it, run `GRANT {found[1]} TO` the role that you use"
    if "must be owner" in text:
        return "run it as the role that owns the schema"
    if "permission denied for schema" in text:
        return "the role that owns the schema runs `trioboss migrate`, and gives rights by `trioboss grants`"
    return "run it as the role that owns the schema, or let that role give you rights: see `trioboss grants`"


def exit_code(error: Exception) -> int:
    """The exit code of an error that ends a command: 2 if the same command cannot succeed later, either."""
    return 2 if isinstance(error, UsageError) or is_permission_denied(error) else 1
