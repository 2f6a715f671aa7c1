"""Connections that speak Arrow, for tasks. Those that no task uses are kept."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import adbc_driver_postgresql.dbapi as adbc

from trioboss.errors import DatabaseUnavailable
from trioboss.postgres.dsn import session_conninfo

__all__ = ["arrow_connection"]

_idle: dict[str, adbc.Connection] = {}
"""Connections that no task uses. To connect takes a tenth of a second, because the driver reads all types first; a
worker of Spark runs many short tasks one after the other, and is gone when it was idle for a minute."""


def _connect(conninfo: str) -> adbc.Connection:
    idle = _idle.pop(conninfo, None)
    if idle is not None:
        try:
            with idle.cursor() as cursor:
                cursor.execute("SELECT 1")
                cursor.fetchall()
            idle.rollback()
        except adbc.Error:
            _close(idle)
        else:
            return idle
    try:
        return adbc.connect(conninfo, autocommit=False)
    except adbc.Error as error:
        raise DatabaseUnavailable(f"cannot connect: {error}") from None


def _close(connection: adbc.Connection) -> None:
    with suppress(adbc.Error):
        connection.close()


def _keep(conninfo: str, connection: adbc.Connection) -> None:
    if (other := _idle.pop(conninfo, None)) is not None:
        _close(other)
    _idle[conninfo] = connection


@contextmanager
def arrow_connection(dsn: str) -> Iterator[adbc.Connection]:
    """A connection for the length of a block, in which rows are staged."""
    conninfo = session_conninfo(dsn)
    connection = _connect(conninfo)
    try:
        yield connection
    except adbc.Error as error:
        _close(connection)
        raise DatabaseUnavailable(f"cannot stage rows: {error}") from None
    except BaseException:
        _close(connection)
        raise
    _keep(conninfo, connection)
