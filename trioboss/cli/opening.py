"""How a command opens its boss: it does no maintenance, and does not migrate a server that was named."""

import argparse
from contextlib import AbstractAsyncContextManager

from trioboss.api.boss import Boss, open_boss
from trioboss.postgres.embedded import find_dsn

__all__ = ["open_for"]

CONNECT_WAIT = 5.0  # seconds that a command waits for a server that cannot be reached


def open_for(args: argparse.Namespace, *, migrate: bool | None = None) -> AbstractAsyncContextManager[Boss]:
    """Open a boss for a command. Only an embedded server is migrated without being asked to: nobody else does it."""
    return open_boss(
        args.dsn,
        schema=args.schema,
        migrate=find_dsn(args.dsn) is None if migrate is None else migrate,
        supervise=False,
        schedule=False,
        connect_wait=CONNECT_WAIT,
    )
