"""The psycopg connection inside of a Django connection or an SQLAlchemy session, for blocking programs and for trio.

They are recognised by their attributes: neither library is imported, and neither is trio, which takes long. A
connection that cannot be used is refused with the attribute or the call to pass instead.
"""

from typing import Any, Protocol, TypeAlias

import psycopg

from trioboss.errors import UsageError
from trioboss.postgres.blocking.session import BlockingConnection

__all__ = ["ForeignConnection", "unwrap_blocking", "unwrap_foreign"]


class DjangoConnection(Protocol):
    """`django.db.connection`, or one of `django.db.connections`."""

    connection: Any

    def ensure_connection(self) -> None:
        """Connect, if it is not connected."""


class SqlAlchemyConnection(Protocol):
    """An SQLAlchemy `Connection`."""

    @property
    def connection(self) -> Any:
        """The connection of the pool, with the driver's in it."""

    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""

    def begin(self) -> Any:
        """Begin a transaction."""


class SqlAlchemySession(Protocol):
    """An SQLAlchemy `Session`."""

    def connection(self) -> Any:
        """Its connection, in its transaction."""


ForeignConnection: TypeAlias = DjangoConnection | SqlAlchemyConnection | SqlAlchemySession

_ASYNC_REMEDY = "pass the connection of `async with boss.transaction()`, or a blocking psycopg.Connection"
_REMEDIES = {
    "AsyncConnection": f"it belongs to asyncio: {_ASYNC_REMEDY}",
    "AsyncSession": f"it belongs to asyncio: {_ASYNC_REMEDY}",
    "AsyncEngine": f"it belongs to asyncio: {_ASYNC_REMEDY}",
    "Engine": "pass a connection: `with engine.begin() as conn`",
    "Cursor": "pass its connection: cursor.connection",
    "ConnectionPool": "pass a connection: `with pool.connection() as conn`",
    "sessionmaker": "pass a session: `with Session() as session`",
    "ConnectionHandler": "pass one of its connections: `connections['default']`",
}


def unwrap_blocking(connection: BlockingConnection | ForeignConnection) -> BlockingConnection:
    """The blocking connection of psycopg to use."""
    if isinstance(connection, psycopg.Connection):
        return connection
    if isinstance(connection, psycopg.AsyncConnection) and type(connection).__module__.startswith(
        "trioboss."
    ):
        raise UsageError("conn: a trioboss Connection works under trio: pass it to a Boss, not to a SyncBoss")
    return unwrap_foreign(connection)


def unwrap_foreign(given: Any) -> BlockingConnection:
    """The blocking connection of psycopg inside of an object of another library."""
    found: Any = given
    if _is_async(given):  # whose attributes may raise
        pass
    elif hasattr(given, "ensure_connection"):  # Django
        given.ensure_connection()
        found = given.connection
    elif callable(getattr(given, "connection", None)):  # an SQLAlchemy session
        found = _find_raw(given.connection())
    elif hasattr(given, "in_transaction") and hasattr(given, "exec_driver_sql"):
        found = _find_raw(given)
    if isinstance(found, psycopg.Connection):
        return found
    raise UsageError(f"conn: {_explain(given, found)}")


def _find_raw(connection: Any) -> Any:
    """The driver's connection of an SQLAlchemy Connection, in the transaction that its next statement would begin."""
    if not connection.in_transaction():
        # Otherwise SQLAlchemy would have no record of the transaction, and its commit() would do nothing.
        connection.begin()
    return connection.connection.driver_connection


def _is_async(given: object) -> bool:
    return type(given).__name__.lower().startswith("async")


def _explain(given: object, found: object) -> str:
    kind = type(given)
    name = f"{kind.__module__}.{kind.__qualname__}"
    library = type(found if found is not None else given)
    if library.__module__.partition(".")[0] in ("psycopg2", "asyncpg", "pg8000", "sqlite3"):
        return f"{name} is a connection of {library.__module__.partition('.')[0]}: trioboss needs one of psycopg 3"
    for each in kind.__mro__:
        remedy = _REMEDIES.get(each.__name__)
        if remedy is not None:
            return f"{name}: {remedy}"
    for attribute in ("driver_connection", "connection"):
        if hasattr(given, attribute):
            return f"{name} is not a connection of psycopg: pass its attribute `{attribute}`, if that is one"
    return (
        f"{name} is not a connection: pass one of psycopg 3, of Django or of SQLAlchemy (a session, too), "
        "or that of `async with boss.transaction()`"
    )
