"""Errors after which the same statement may well succeed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from trioboss.errors import DatabaseUnavailable

__all__ = ["transient_as_unavailable"]

# transaction rollback (deadlock, serialization), resources, lock timeout, statement timeout, read-only standby,
# going down or starting
_TRANSIENT = re.compile(r"40...|53...|55P03|57014|25006|25P0.|57P0.|08...|58...")


@contextmanager
def transient_as_unavailable() -> Iterator[None]:
    """For actors, which try again by themselves: such errors are raised as DatabaseUnavailable."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None or _TRANSIENT.fullmatch(error.sqlstate):
            raise DatabaseUnavailable(str(error).partition("\n")[0]) from error
        raise
