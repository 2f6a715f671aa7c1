"""Runs our transactions on a caller's connection, as a part of what the caller is doing.

The rule is that of `blocking.py`: what is open, or what psycopg would open, is joined; in autocommit each
transaction commits by itself.
"""

from typing import Any

import psycopg
import trio
from psycopg import AsyncRawCursor

from trioboss.errors import UsageError
from trioboss.postgres.blocking import check_encoding, finished, register_text, run_blocking, text_values
from trioboss.postgres.connection import Connection
from trioboss.postgres.wire import BoundStatement, Results, Transactions

__all__ = ["check_caller", "run_in_caller"]


def check_caller(connection: object) -> None:
    """Refuse what is no connection, and a connection that needs another event loop."""
    if not isinstance(connection, Connection | psycopg.Connection):
        raise UsageError(
            f"conn: {type(connection).__qualname__} cannot be used under trio: pass a trioboss Connection, "
            "or a blocking psycopg.Connection"
        )


async def run_in_caller(
    connection: Connection[Any] | psycopg.Connection[Any], transactions: Transactions
) -> Results:
    """Run the transactions on a connection of ours or a blocking one of psycopg's.

    The blocking one is used from a thread: a statement of ours may wait for a lock that another task of this
    very program holds. It is not interrupted by a cancellation.
    """
    check_caller(connection)
    if isinstance(connection, psycopg.Connection):
        return await trio.to_thread.run_sync(_run_blocking, connection, transactions)
    check_encoding(connection)
    if connection.pgconn.pipeline_status:
        return await _run_in_pipeline(connection, transactions)
    return await connection.run(transactions)


def _run_blocking(connection: psycopg.Connection[Any], transactions: Transactions) -> Results:
    return run_blocking(connection, transactions, prepare=False)


async def _run_in_pipeline(connection: Connection[Any], transactions: Transactions) -> Results:
    results: Results = []
    for steps in transactions:
        async with connection.pipeline():
            cursors = [await _execute(connection, step) for step in steps]
        results.append([finished(cursor) for cursor in cursors])
    return results


async def _execute(connection: Connection[Any], step: BoundStatement) -> AsyncRawCursor[Any]:
    cursor = AsyncRawCursor(connection)
    register_text(cursor)
    return await cursor.execute(step.statement.text.encode(), text_values(step), prepare=False, binary=True)
