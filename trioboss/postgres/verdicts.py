"""What an error of the database means to a verb."""

from psycopg import errors

__all__ = ["table_is_gone", "unique_is_violated"]


def table_is_gone(error: BaseException) -> bool:
    """True if the queue's jobs are in another table now: theirs was dropped, or they got one of their own."""
    return isinstance(error, errors.UndefinedTable) or (
        isinstance(error, errors.CheckViolation) and error.diag.constraint_name is None
    )


def unique_is_violated(error: BaseException) -> bool:
    """True if a unique index refused a row."""
    return isinstance(error, errors.UniqueViolation)
