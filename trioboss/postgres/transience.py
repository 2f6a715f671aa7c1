"""Errors after which the same statement may well succeed."""

import re

import psycopg

from trioboss.errors import DatabaseUnavailable

__all__ = ["transient_as_unavailable"]

# transaction rollback (deadlock, serialization), resources, lock timeout, statement timeout, read-only standby,
# going down or starting
_TRANSIENT = re.compile(r"40...|53...|55P03|57014|25006|25P0.|57P0.|08...|58...")


class transient_as_unavailable:  # in small letters, as it reads: `with transient_as_unavailable():`
    """For actors, which try again by themselves: such errors are raised as DatabaseUnavailable."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, psycopg.Error) and _is_transient(error):
            raise DatabaseUnavailable(str(error).partition("\n")[0]) from error


def _is_transient(error: psycopg.Error) -> bool:
    return error.sqlstate is None or _TRANSIENT.fullmatch(error.sqlstate) is not None
