"""What an error of the database means to a verb."""

from psycopg import errors

__all__ = [
    "is_deadlock",
    "is_of_the_database",
    "lacks_privilege",
    "lock_is_taken",
    "table_is_gone",
    "timed_out",
    "transaction_is_spoilt",
    "unique_is_violated",
]


def table_is_gone(error: BaseException) -> bool:
    """True if the queue's jobs are in another table now: theirs was dropped, or they got one of their own."""
    return isinstance(error, errors.UndefinedTable) or (
        isinstance(error, errors.CheckViolation) and error.diag.constraint_name is None
    )


def transaction_is_spoilt(error: BaseException) -> bool:
    """True if nothing was tried, because an error before had ended the transaction."""
    return isinstance(error, errors.InFailedSqlTransaction)


def unique_is_violated(error: BaseException) -> bool:
    """True if a unique index refused a row."""
    return isinstance(error, errors.UniqueViolation)


def is_of_the_database(error: BaseException) -> bool:
    """True if the server said it, or the driver of the way to it."""
    return isinstance(error, errors.Error)


def lacks_privilege(error: BaseException) -> bool:
    """True if the role, or the server as a standby, may only read."""
    return isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction)


def role_is_unknown(error: BaseException) -> bool:
    """True if a statement names a role that the server does not have."""
    return isinstance(error, errors.UndefinedObject)


def is_deadlock(error: BaseException) -> bool:
    """True if the server ended the transaction because it and another one waited for each other."""
    return isinstance(error, errors.DeadlockDetected)


def lock_is_taken(error: BaseException) -> bool:
    """True if somebody else had the lock for longer than lock_timeout."""
    return isinstance(error, errors.LockNotAvailable)


def timed_out(error: BaseException) -> bool:
    """True if a statement took longer than statement_timeout, or somebody asked the server to end it."""
    return isinstance(error, errors.QueryCanceled)
