"""How a command opens its boss: without background work, and without changing the schema of a server that was named."""

import argparse
from contextlib import AbstractAsyncContextManager

from trioboss.api.boss import Boss, open_boss
from trioboss.postgres.embedded import find_dsn

__all__ = ["open_for"]

CONNECT_WAIT = 5.0  # seconds a command waits for a server that is not there


def open_for(args: argparse.Namespace, *, migrate: bool | None = None) -> AbstractAsyncContextManager[Boss]:
    """A boss for a command. Only an embedded server, which nobody else migrates, is migrated unasked."""
    return open_boss(
        args.dsn,
        schema=args.schema,
        migrate=find_dsn(args.dsn) is None if migrate is None else migrate,
        supervise=False,
        schedule=False,
        connect_wait=CONNECT_WAIT,
    )
