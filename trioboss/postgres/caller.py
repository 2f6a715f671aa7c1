"""Runs our transactions on a caller's connection, as part of the caller's own transaction.

The rule is that of `blocking/session.py`: a transaction that is open, or that psycopg would open, is joined; in
autocommit, outside a transaction block, each of our transactions commits by itself.

The connection is one of ours or a blocking one of psycopg's. A blocking one is used in a thread, because a statement
may wait for a lock that another task of this program holds. A cancellation does not interrupt it.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, TypeAlias

import psycopg
import trio
from psycopg import AsyncRawCursor

from trioboss.errors import UsageError
from trioboss.postgres.blocking import (
    BlockingConnection,
    ForeignConnection,
    check_client_encoding,
    copy_in_blocking,
    get_result,
    opens_implicitly,
    raw_values,
    register_raw_value,
    run_blocking,
    run_script_blocking,
    unwrap_foreign,
)
from trioboss.postgres.connection import Connection
from trioboss.postgres.operation import Copy, Script
from trioboss.postgres.wire import BoundStatement, Results, Transactions

__all__ = [
    "AnyConnection",
    "CallerConnection",
    "check_connection",
    "copy_in",
    "ensure_transaction",
    "run_in_caller",
    "run_in_savepoint",
    "run_script",
    "unwrap",
]

AnyConnection: TypeAlias = Connection[Any] | BlockingConnection
CallerConnection: TypeAlias = AnyConnection | ForeignConnection
"""The ``conn`` of a call: one of ours, a blocking one of psycopg's, or one of Django or SQLAlchemy on psycopg."""


def unwrap(connection: CallerConnection) -> AnyConnection:
    """The connection of psycopg to use under trio."""
    if isinstance(connection, Connection | psycopg.Connection):
        return connection
    return unwrap_foreign(connection)


def check_connection(connection: object) -> None:
    """Raise UsageError for anything but a connection that works under trio."""
    if not isinstance(connection, Connection | psycopg.Connection):
        raise UsageError(
            f"conn: {type(connection).__qualname__} cannot be used under trio: pass a trioboss Connection, "
            "or a blocking psycopg.Connection"
        )
    if isinstance(connection, Connection) and connection.is_returned:
        raise UsageError("conn: the block of this connection has ended: use it within its `async with`")


async def run_in_caller(connection: AnyConnection, transactions: Transactions) -> Results:
    """Run the transactions; return the results of their statements, one list for each transaction."""
    check_connection(connection)
    if isinstance(connection, psycopg.Connection):
        return await trio.to_thread.run_sync(_run_blocking, connection, transactions)
    check_client_encoding(connection)
    if connection.pgconn.pipeline_status:
        return await _run_in_pipeline(connection, transactions)
    return await connection.run(transactions)


def _run_blocking(connection: BlockingConnection, transactions: Transactions) -> Results:
    return run_blocking(connection, transactions, prepare=False)


async def _run_in_pipeline(connection: Connection[Any], transactions: Transactions) -> Results:
    # `Connection.run` cannot be used inside psycopg's pipeline: the results of the caller's own statements come first,
    # and only psycopg has the queue of them.
    results: Results = []
    for transaction in transactions:
        async with connection.pipeline():
            cursors = [await _execute(connection, bound) for bound in transaction]
        results.append([get_result(cursor) for cursor in cursors])
    return results


async def _execute(connection: Connection[Any], bound: BoundStatement) -> AsyncRawCursor[Any]:
    # Not prepared: psycopg's cache of prepared statements on this connection belongs to the caller.
    cursor = AsyncRawCursor(connection)
    register_raw_value(cursor)
    return await cursor.execute(bound.statement.text.encode(), raw_values(bound), prepare=False, binary=True)


@asynccontextmanager
async def ensure_transaction(connection: AnyConnection) -> AsyncIterator[None]:
    """A block whose requests take effect all or not at all.

    They are part of the caller's transaction if one is open or psycopg is about to open one, else of a new one.
    """
    check_connection(connection)
    # psycopg's transaction() would commit at the end of the block if it had to begin the transaction itself, but a
    # caller without autocommit expects to commit.
    if opens_implicitly(connection):
        yield
    elif isinstance(connection, psycopg.Connection):
        async with _in_thread(connection.transaction()):
            yield
    else:
        async with connection.transaction():
            yield


@asynccontextmanager
async def _in_thread(manager: AbstractContextManager[object]) -> AsyncIterator[None]:
    """Enter and leave a blocking context manager in a thread. Leaving it is not cancelled."""
    await trio.to_thread.run_sync(manager.__enter__)
    try:
        yield
    except BaseException as error:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(manager.__exit__, type(error), error, error.__traceback__)
        raise
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(manager.__exit__, None, None, None)


async def run_in_savepoint(connection: AnyConnection, transactions: Transactions) -> Results:
    """Run the transactions; if they fail, roll back what they did and nothing else.

    If psycopg opens a transaction for them, a savepoint is not needed: that transaction is rolled back whole.
    """
    opens = opens_implicitly(connection)  # asked before, because the first statement changes the answer
    try:
        async with ensure_transaction(connection):
            return await run_in_caller(connection, transactions)
    except psycopg.Error:
        if opens:
            await _roll_back(connection)
        raise


async def _roll_back(connection: AnyConnection) -> None:
    if isinstance(connection, psycopg.Connection):
        await trio.to_thread.run_sync(connection.rollback)
    else:
        await connection.rollback()


async def copy_in(connection: AnyConnection, request: Copy) -> Results:
    """Run a COPY FROM STDIN."""
    if isinstance(connection, psycopg.Connection):
        return await trio.to_thread.run_sync(copy_in_blocking, connection, request)
    async with connection.cursor().copy(request.statement.encode()) as copy:
        for block in request.blocks:
            await copy.write(block)
    return []


async def run_script(connection: AnyConnection, request: Script) -> Results:
    """Run several statements without parameters."""
    if isinstance(connection, psycopg.Connection):
        return await trio.to_thread.run_sync(run_script_blocking, connection, request)
    await connection.execute(request.text.encode())
    return []
