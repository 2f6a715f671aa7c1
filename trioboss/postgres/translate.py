"""Turns psycopg's errors into ours. Nothing else in trioboss does.

Only the loss of the server is translated: what is wrong with a statement stays an error of psycopg's, with
its SQLSTATE and its diagnostics.
"""

import re
from types import TracebackType
from typing import Any

import psycopg

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown

__all__ = ["is_refusal", "translated", "unavailable"]

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

# connection_exception, and the server going down, crashing or not up yet
_LOST = re.compile(r"08...|57P0[123]")
# libpq keeps the SQLSTATE of a refused connection to itself, so the message has to do. From a server that
# speaks another language a refusal looks like any other failure, and is retried until the deadline.
_REFUSED = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|pg_hba\.conf rejects"
    r'|role "[^"]*" does not exist|is not permitted to log in|database "[^"]*" does not exist'
    r"|permission denied for database|no such (user|database)"
)


class translated:  # in small letters, as it reads: `with translated(connection):`
    """A block in which the loss of the server is raised as DatabaseUnavailable, for trio and blocking code.

    With `commits=True` it is OutcomeUnknown if the connection was good when the block began: what was under
    way may have been committed before the answer got lost. That is also said of some statements that never
    reached the server, because nobody can tell them apart.
    """

    __slots__ = ("_commits", "_connection", "_was_good")

    def __init__(self, connection: AnyConnection | None = None, *, commits: bool = False) -> None:
        self._connection = connection
        self._commits = commits
        self._was_good = False

    def __enter__(self) -> None:
        self._was_good = self._connection is not None and not self._connection.closed

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if isinstance(exc_val, psycopg.OperationalError) and self._is_lost(exc_val):
            kind = OutcomeUnknown if self._commits and self._was_good else DatabaseUnavailable
            raise kind(f"the connection to Postgres is lost: {_first_line(exc_val)}") from exc_val

    def _is_lost(self, error: psycopg.OperationalError) -> bool:
        if self._connection is not None and self._connection.closed:
            return True
        return _LOST.fullmatch(error.sqlstate or "") is not None


def unavailable(error: psycopg.Error) -> DatabaseUnavailable:
    """Return the error that says why connecting failed. libpq names host and user, never the password."""
    return DatabaseUnavailable(f"Postgres cannot be reached: {_first_line(error)}")


def is_refusal(error: psycopg.Error) -> bool:
    """Tell whether the server answered and turned us down for good: trying again cannot help."""
    sqlstate = error.sqlstate or ""
    return sqlstate.startswith("28") or sqlstate == "3D000" or _REFUSED.search(str(error)) is not None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
