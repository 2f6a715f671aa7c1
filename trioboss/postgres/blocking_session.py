"""Opens our own blocking session, with the same settings as the sessions under trio."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from trioboss.errors import UsageError
from trioboss.postgres.blocking import run_blocking
from trioboss.postgres.settings import check_encoding, session_parameters, session_step
from trioboss.postgres.translate import translated, unavailable

__all__ = ["is_usable", "open_blocking"]


def open_blocking(dsn: str, settings: Mapping[str, str] | None = None) -> psycopg.Connection[Any]:
    """Connect, in autocommit; the caller closes."""
    parameters = session_parameters(dsn)
    try:
        connection = psycopg.connect(make_conninfo("", **parameters), autocommit=True)
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
    try:
        check_encoding(connection.info)
    except UsageError:
        connection.close()
        raise
    try:
        with translated(connection):
            run_blocking(
                connection, [[session_step(parameters, settings or {}, pooled=False)]], prepare=False
            )
    except BaseException:
        connection.close()
        raise
    return connection


def is_usable(connection: psycopg.Connection[Any]) -> bool:
    """False if the connection is closed, or if the server hung up on it while nobody looked."""
    try:
        # The first may find the server's last words, the second finds that there are no more.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        connection.close()
    return not connection.closed
