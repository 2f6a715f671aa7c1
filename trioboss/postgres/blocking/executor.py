"""Executes operations on a blocking connection. Nothing here needs trio, which takes long to import.

An error of a request is thrown into the operation, which may handle it, as in postgres/executor.py.
"""

from typing import TypeVar

import psycopg

from trioboss.errors import UsageError
from trioboss.postgres.blocking.session import (
    BlockingConnection,
    copy_in_blocking,
    is_pooled,
    run_blocking,
    run_in_savepoint_blocking,
    run_script_blocking,
)
from trioboss.postgres.operation import (
    Copy,
    InSavepoint,
    OnOwnConnection,
    Operation,
    Request,
    Script,
    all_transactions,
)
from trioboss.postgres.wire import Results

__all__ = ["execute_blocking"]

T = TypeVar("T")


def execute_blocking(
    connection: BlockingConnection, operation: Operation[T], own_connection: BlockingConnection
) -> T:
    """Execute an operation on a blocking connection, as part of the transaction that is open there.

    ``own_connection`` is for requests that must not become part of that transaction. It may be the same connection.
    Errors of psycopg leave it as they are: only the caller can tell what the loss of the connection means.
    """
    if not isinstance(connection, psycopg.Connection):
        raise UsageError(f"conn: {type(connection).__qualname__} is not a blocking psycopg.Connection")
    prepare = connection is own_connection and not is_pooled(connection)

    def run(request: Request) -> Results:
        if isinstance(request, OnOwnConnection):
            # A blocking connection has nobody to read a follow-up later, so it is one more transaction.
            prepared = not is_pooled(own_connection)
            return run_blocking(own_connection, request.batch.all_transactions, prepare=prepared)
        if isinstance(request, InSavepoint):
            return run_in_savepoint_blocking(connection, request.batch.all_transactions, prepare=prepare)
        if isinstance(request, Copy):
            return copy_in_blocking(connection, request)
        if isinstance(request, Script):
            return run_script_blocking(connection, request)
        return run_blocking(connection, all_transactions(request), prepare=prepare)

    try:
        request = next(operation)
        while True:
            try:
                results = run(request)
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send(results)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
