"""Opens connections for our own use: in autocommit, with the settings of `settings.py`."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from trioboss.errors import UsageError
from trioboss.postgres.connection.connection import Connection
from trioboss.postgres.dsn import check_database_encoding, session_parameters
from trioboss.postgres.settings import session_statement

__all__ = ["Connect", "is_behind_pooler", "open_connection", "open_session"]

Connect: TypeAlias = Callable[..., Awaitable[Connection[Any]]]
"""Opens a connection: gets the parameters as text, and further arguments, both for ``Connection.connect``."""


async def open_session(
    dsn: str = "",
    *,
    prepare: bool = True,
    settings: Mapping[str, str] | None = None,
    connect: Connect | None = None,
) -> Connection[TupleRow]:
    """Connect and return a session that the caller has to close. ``connect`` does it instead of Connection.connect."""
    parameters = session_parameters(dsn)
    # psycopg's automatic preparation is off: its DEALLOCATE ALL would also remove the statements of run().
    opens = Connection.connect if connect is None else partial(_connect_by, connect)
    connection: Connection[TupleRow] = await opens(
        make_conninfo("", **parameters), autocommit=True, prepare_threshold=None, prepare=prepare
    )
    try:
        check_database_encoding(connection.info)  # reported by the server when connecting: no round trip
    except UsageError:
        await connection.close()
        raise
    await connection.begin_session(session_statement(parameters, settings or {}, pooled=not prepare))
    return connection


async def _connect_by(connect: Connect, conninfo: str, **arguments: Any) -> Connection[TupleRow]:
    try:
        opening = connect(conninfo, **arguments)
        if not inspect.isawaitable(opening):
            raise UsageError(f"connect: returned {type(opening).__name__}: it is not an async function")
        connection = await opening
    except (psycopg.OperationalError, UsageError):
        raise
    except psycopg.Error as error:  # the arguments are not for this function: another try would not help
        problem = str(error).strip()
        raise UsageError(f"connect: {problem}: connect by trioboss.Connection.connect") from error
    except Exception as error:  # as if the server could not be reached: it is tried again
        raise psycopg.OperationalError(f"connect: {type(error).__name__}: {error}") from error
    if not isinstance(connection, Connection):
        raise UsageError(f"connect: returned {type(connection).__name__}, not a trioboss.Connection")
    return connection


@asynccontextmanager
async def open_connection(
    dsn: str = "",
    *,
    prepare: bool = True,
    settings: Mapping[str, str] | None = None,
    connect: Connect | None = None,
) -> AsyncIterator[Connection[TupleRow]]:
    """One session for the length of a block, for instance to LISTEN on. ``settings`` are run-time settings."""
    connection = await open_session(dsn, prepare=prepare, settings=settings, connect=connect)
    try:
        yield connection
    finally:
        await connection.close()


async def is_behind_pooler(connection: Connection[Any]) -> bool:
    """Tell whether there is a pooler between the connection and the server.

    A pooler gives its clients process ids of its own, which differ from the one that the server reports. A pooler in
    session mode would not matter to us, but a client cannot tell the modes apart.
    """
    row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
    assert row is not None
    return bool(row[0] != connection.info.backend_pid)
