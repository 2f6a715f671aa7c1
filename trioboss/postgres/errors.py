"""Error classification: what an error of psycopg means to trioboss.

Three questions are answered here and nowhere else:

- Is the connection to the server lost? `translate_errors` then raises our DatabaseUnavailable or OutcomeUnknown.
- May the same statement succeed later? `wrap_driver_errors` then raises DatabaseUnavailable, else StatementFailed.
- Which condition has the server reported? The functions ``is_...`` let the store and the edges, which do not import
  psycopg, ask for it.

Within an operation an error of a statement is an error of psycopg, with its SQLSTATE and its diagnostics. No error of
psycopg leaves an operation: it is the cause of ours.
"""

import enum
import logging
import re
from types import TracebackType
from typing import Any

import psycopg
from psycopg import errors

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown, SchemaOutOfDate, ServerDown, StatementFailed

__all__ = [
    "Refusal",
    "classify_refusal",
    "explain_database_error",
    "find_dependents",
    "is_database_error",
    "is_foreign_key_violation",
    "is_lock_not_available",
    "is_permission_denied",
    "is_query_canceled",
    "is_refusal",
    "is_rejected",
    "is_repeatable",
    "is_role_unknown",
    "is_server_down",
    "is_stale_statement",
    "is_table_gone",
    "is_transaction_aborted",
    "is_unique_violation",
    "lacks_privilege",
    "log_failed_follow_up",
    "refuse_aborted",
    "translate_errors",
    "unavailable",
    "wrap_driver_errors",
]

_logger = logging.getLogger("trioboss.postgres")

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

# SQLSTATEs of a lost connection: connection_exception, and a server that shuts down, crashed or is starting.
_LOST = re.compile(r"08...|57P0[123]")
# SQLSTATEs of what may be over at the next try: deadlock and serialization failure (40), resources (53), lock timeout
# (55P03), cancelled by a timeout (57014), read-only standby (25006), transaction ended by a timeout (25P03, 25P04),
# shutdown (57P0), lost connection (08), I/O error (58).
_TRANSIENT = re.compile(r"40...|53...|55P03|57014|25006|25P0[34]|57P0.|08...|58...")
_JOB_TABLE = re.compile(r"\bj[0-9a-f]{32}\b")  # of one queue: add_job_table
# libpq does not tell the SQLSTATE of a refused connection, so the message is compared. A server with another
# lc_messages sends another text: its refusal looks like any other failure, and is retried until the deadline.
_REFUSED = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|pg_hba\.conf rejects"
    r'|role "[^"]*" does not exist|is not permitted to log in|database "[^"]*" does not exist'
    r"|permission denied for database|no such (user|database)"
)


# Messages of libpq and the server while no server runs, or it starts or stops; and messages that show no such thing.
_DOWN = re.compile(
    r"Connection refused|No such file or directory|the database system is |not accepting connections"
)
_UNKNOWN = re.compile(r"timeout|timed out|no answer|unreachable|No route", re.IGNORECASE)

_ABORTED = (
    "a statement of the transaction has failed: to go on after such an error, run the statement that may fail in a "
    "savepoint (`conn.transaction()`)"
)

# The context managers are classes with lower-case names because they are used like functions. A generator with
# @contextmanager costs about three times as much, and they are on the path of every statement.


class translate_errors:
    """A block in which the loss of the server is raised as DatabaseUnavailable; for trio and for blocking code.

    With ``commits=True`` it is raised as OutcomeUnknown if the connection was good when the block began: a
    transaction may have been committed before its confirmation got lost. Some of these statements never reached the
    server; the client cannot tell them apart.
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


class wrap_driver_errors:
    """A block that no error of psycopg leaves: a transient one is raised as DatabaseUnavailable, any other as
    StatementFailed.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, psycopg.Error):
            raise _translated(error) from error


def _translated(error: psycopg.Error) -> DatabaseUnavailable | StatementFailed:
    if _is_queue_gone(error):
        return DatabaseUnavailable(
            "a queue was deleted or created again while the call was under way: repeat it"
        )
    if _is_transient(error):
        return DatabaseUnavailable(_first_line(error))
    if is_transaction_aborted(error):
        return StatementFailed(f"Postgres ignored a statement, because {_ABORTED}", error.sqlstate)
    return StatementFailed(f"Postgres refused a statement: {_first_line(error)}", error.sqlstate)


def _is_transient(error: psycopg.Error) -> bool:
    # Without a SQLSTATE the error does not come from the server, but from the connection to it.
    return error.sqlstate is None or _TRANSIENT.fullmatch(error.sqlstate) is not None


def _is_queue_gone(error: psycopg.Error) -> bool:
    # Operations on one queue find it again (`on_queue`); those on many, and a second deletion, come here. The message
    # is translated, the name in it is not.
    return isinstance(error, errors.UndefinedTable) and _JOB_TABLE.search(str(error)) is not None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


# -- connecting


def unavailable(error: psycopg.Error) -> DatabaseUnavailable:
    """Return the error for a failed connection attempt. libpq names host and user in it, never the password."""
    kind = ServerDown if is_server_down(error) else DatabaseUnavailable
    return kind(f"Postgres cannot be reached: {_first_line(error)}")


def is_server_down(error: BaseException) -> bool:
    """Tell whether the failed attempt to connect shows that no server runs there. A time-out shows nothing."""
    text = str(error)
    return (
        isinstance(error, psycopg.OperationalError) and bool(_DOWN.search(text)) and not _UNKNOWN.search(text)
    )


class Refusal(enum.Enum):
    """Why the server cannot be used. Each has its own remedy."""

    PASSWORD = "password"
    DATABASE = "database"
    ROLE = "role"
    HOST_RULES = "pg_hba.conf"
    NAME = "name"
    FULL = "full"
    OTHER = "other"


def classify_refusal(error: BaseException) -> Refusal:
    """Tell why a connection failed, by the message of libpq: it passes no SQLSTATE on."""
    text = str(error)
    return next((kind for kind, pattern in _REFUSALS.items() if pattern.search(text)), Refusal.OTHER)


_REFUSALS = {
    Refusal.PASSWORD: re.compile(
        r"password authentication failed|no password supplied|authentication failed"
    ),
    Refusal.DATABASE: re.compile(r'database "[^"]*" does not exist|no such database'),
    Refusal.ROLE: re.compile(r'role "[^"]*" does not exist|is not permitted to log in|no such user'),
    Refusal.HOST_RULES: re.compile(r"pg_hba\.conf"),
    Refusal.NAME: re.compile(
        r"could not translate host name|failed to resolve host|Name or service not known"
    ),
    Refusal.FULL: re.compile(r"too many clients|remaining connection slots"),
}


def is_refusal(error: psycopg.Error) -> bool:
    """Tell whether the server answered and refused the connection for good, so that a retry cannot help."""
    sqlstate = error.sqlstate or ""
    return sqlstate.startswith("28") or sqlstate == "3D000" or _REFUSED.search(str(error)) is not None


def explain_database_error(error: BaseException) -> str | None:
    """An error of the server, or of the connection to it, in one line; None for any other error."""
    cause = _driver_error(error)
    return f"the database refused: {_first_line(cause)}" if isinstance(cause, errors.Error) else None


# -- conditions that the server reports


def _driver_error(error: BaseException) -> BaseException:
    """The error of psycopg that is the cause of ours."""
    translated = isinstance(error, DatabaseUnavailable | StatementFailed | SchemaOutOfDate)
    return error.__cause__ if translated and error.__cause__ is not None else error


def is_database_error(error: BaseException) -> bool:
    """Tell whether the error comes from the server, or from the connection to it."""
    return isinstance(error, errors.Error)


def is_rejected(error: BaseException) -> bool:
    """Tell whether the server rejects the statement or its values, so that repeating it cannot help."""
    return (
        isinstance(error, psycopg.Error)
        and not _is_transient(error)
        and not is_table_gone(error)
        and not is_transaction_aborted(error)
    )


def is_repeatable(error: BaseException) -> bool:
    """Tell whether the server rolled the transaction back in favour of another: a deadlock, or a serialization
    failure.
    """
    return isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)


def is_table_gone(error: BaseException, *, of_queue: bool = True) -> bool:
    """Tell whether a queue's jobs are in another table now: it was dropped, or the queue got a table of its own.

    Unless ``of_queue`` the statement was for the common table: if that does not exist, there is no schema either.
    """
    # A row that fits into no partition any more is a check violation without the name of a constraint.
    return (of_queue and isinstance(error, errors.UndefinedTable)) or (
        isinstance(error, errors.CheckViolation) and error.diag.constraint_name is None
    )


def refuse_aborted(connection: AnyConnection) -> None:
    """Raise StatementFailed if a statement of the transaction has failed: the server would answer COMMIT by a rollback,
    and report no error.
    """
    if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
        raise StatementFailed(
            f"nothing is committed, because {_ABORTED}", errors.InFailedSqlTransaction.sqlstate
        )


def is_transaction_aborted(error: BaseException) -> bool:
    """Tell whether the statement was ignored because an earlier error had aborted its transaction."""
    return isinstance(error, errors.InFailedSqlTransaction)


def is_unique_violation(error: BaseException) -> bool:
    """Tell whether a unique index refused a row."""
    return isinstance(error, errors.UniqueViolation)


def is_foreign_key_violation(error: BaseException) -> bool:
    """Tell whether a row refers to another one that does not exist, or no longer exists."""
    return isinstance(error, errors.ForeignKeyViolation)


def is_permission_denied(error: BaseException) -> bool:
    """Tell whether the role may not write this, or the server is a standby and nobody may."""
    return isinstance(_driver_error(error), errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction)


def lacks_privilege(error: BaseException) -> bool:
    """Tell whether the role may not do this, and another one may."""
    return isinstance(_driver_error(error), errors.InsufficientPrivilege)


def find_dependents(error: BaseException) -> str | None:
    """The objects that use something, which cannot be dropped because of them, in one line; None for other errors."""
    cause = _driver_error(error)
    if not isinstance(cause, errors.DependentObjectsStillExist):
        return None
    return "; ".join((cause.diag.message_detail or "something of others uses it").splitlines())


def is_role_unknown(error: BaseException) -> bool:
    """Tell whether a statement names a role that the server does not have."""
    return isinstance(_driver_error(error), errors.UndefinedObject)


def is_lock_not_available(error: BaseException) -> bool:
    """Tell whether another transaction held the lock for longer than lock_timeout."""
    return isinstance(_driver_error(error), errors.LockNotAvailable)


def is_query_canceled(error: BaseException) -> bool:
    """Tell whether a statement exceeded statement_timeout, or was cancelled on request."""
    return isinstance(_driver_error(error), errors.QueryCanceled)


def is_stale_statement(error: psycopg.Error) -> bool:
    """Tell whether a prepared statement no longer exists, or no longer fits the tables it reads."""
    if isinstance(error, errors.InvalidSqlStatementName):
        return True
    # Postgres has no SQLSTATE of its own for "cached plan must not change result type", and the message is translated.
    # The name of the function that reports it is not.
    return (
        isinstance(error, errors.FeatureNotSupported)
        and error.diag.source_function == "RevalidateCachedQuery"
    )


def log_failed_follow_up(name: str, reason: object) -> None:
    """Log why a follow-up failed, and that nothing has to be done about it."""
    _logger.warning(
        "follow-up %s failed: %s; the batch before it is committed, and the next poll of a worker makes up for it",
        name,
        reason,
    )
