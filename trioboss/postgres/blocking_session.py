"""Opens our own blocking session, with the same settings as the sessions under trio."""

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from trioboss.postgres.blocking import run_blocking
from trioboss.postgres.settings import session_parameters, session_step
from trioboss.postgres.translate import unavailable

__all__ = ["open_blocking"]


def open_blocking(dsn: str) -> psycopg.Connection[Any]:
    """Connect, in autocommit; the caller closes."""
    parameters = session_parameters(dsn)
    try:
        connection = psycopg.connect(make_conninfo("", **parameters), autocommit=True)
    except psycopg.OperationalError as error:
        raise unavailable(error) from error
    run_blocking(connection, [[session_step(parameters, {}, pooled=False)]], prepare=False)
    return connection
