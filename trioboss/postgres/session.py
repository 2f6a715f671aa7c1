"""Opens the sessions that trioboss uses itself: in autocommit, with the settings of `settings.py`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from trioboss.errors import UsageError
from trioboss.postgres.connection import Connection
from trioboss.postgres.settings import check_encoding, session_parameters, session_step

__all__ = ["open_connection", "open_session"]


async def open_session(
    dsn: str = "", *, prepare: bool = True, settings: Mapping[str, str] | None = None
) -> Connection[TupleRow]:
    """Connect and return a session that the caller has to close."""
    params = session_parameters(dsn)
    connection: Connection[TupleRow] = await Connection.connect(
        make_conninfo("", **params), autocommit=True, prepare_threshold=None, prepare=prepare
    )
    try:
        check_encoding(connection.info)
    except UsageError:
        await connection.close()
        raise
    # Automatic preparation by psycopg is off: its DEALLOCATE ALL would take the statements of run() along.
    await connection.begin_session(session_step(params, settings or {}, pooled=not prepare))
    return connection


@asynccontextmanager
async def open_connection(
    dsn: str = "", *, prepare: bool = True, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Connection[TupleRow]]:
    """One session for the length of a block, for instance to LISTEN on. `settings` are run-time settings."""
    connection = await open_session(dsn, prepare=prepare, settings=settings)
    try:
        yield connection
    finally:
        await connection.close()
