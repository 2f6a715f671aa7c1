"""The ``conn`` of a call under trio: one of ours, a blocking one of psycopg's, or one inside of another library's."""

from typing import TypeAlias

import psycopg

from trioboss.postgres.blocking import ForeignConnection as ForeignConnection
from trioboss.postgres.blocking import unwrap_blocking as unwrap_blocking
from trioboss.postgres.blocking import unwrap_foreign
from trioboss.postgres.caller import AnyConnection
from trioboss.postgres.connection import Connection

__all__ = ["CallerConnection", "ForeignConnection", "unwrap", "unwrap_blocking"]

CallerConnection: TypeAlias = AnyConnection | ForeignConnection
"""The ``conn`` of a call: one of ours, a blocking one of psycopg's, or one of Django or SQLAlchemy on psycopg."""


def unwrap(connection: CallerConnection) -> AnyConnection:
    """The connection of psycopg to use under trio."""
    if isinstance(connection, Connection | psycopg.Connection):
        return connection
    return unwrap_foreign(connection)
