"""Executes operations under trio: on the pool, or on one connection of a caller.

An error of a request is thrown into the operation, which may handle it. An error of psycopg that it does not handle is
the cause of the DatabaseUnavailable or StatementFailed that leaves the executor.
"""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import psycopg
import trio

from trioboss.errors import DatabaseUnavailable
from trioboss.postgres.caller import AnyConnection, copy_in, run_in_caller, run_in_savepoint, run_script
from trioboss.postgres.errors import (
    is_repeatable,
    log_failed_follow_up,
    translate_errors,
    wrap_driver_errors,
)
from trioboss.postgres.operation import (
    Batch,
    Copy,
    InParallel,
    InSavepoint,
    OnOwnConnection,
    Operation,
    Request,
    Script,
    all_transactions,
)
from trioboss.postgres.pool import Pool
from trioboss.postgres.wire import BoundStatement, Results

__all__ = ["execute", "execute_in", "execute_in_transaction"]

T = TypeVar("T")

_FOLLOW_UP_TIMEOUT = 5.0  # seconds
_MOST_REPEATS = 5  # of a transaction that the server rolled back in favour of another
_REPEAT_DELAY = 0.02  # seconds at most before the first repeat; doubled for each further one


# -- on the pool


async def execute(operation: Operation[T], pool: Pool) -> T:
    """Execute an operation on our own connections, each request on any connection of the pool."""

    async def run(request: Request) -> Results:
        if isinstance(request, InParallel):
            return await _run_in_parallel(pool, request.batches)
        batch = request if isinstance(request, Batch) else _unwrap(request)
        if not batch.transactions:
            return await _run_follow_up(pool, batch.follow_up)
        # More than one transaction cannot be repeated: some of them may be committed.
        repeats = _MOST_REPEATS if len(batch.transactions) == 1 else 0
        for repeat in range(repeats):
            try:
                return await pool.run(
                    batch.transactions, batch.follow_up, await_follow_up=batch.await_follow_up
                )
            except psycopg.Error as error:
                if not is_repeatable(error):
                    raise
                await trio.sleep(_REPEAT_DELAY * 2**repeat * random.random())
        return await pool.run(batch.transactions, batch.follow_up, await_follow_up=batch.await_follow_up)

    return await _execute_operation(operation, run)


def _unwrap(request: Request) -> Batch:
    # On our own connection there is no caller's transaction that the batch could harm.
    assert isinstance(request, OnOwnConnection | InSavepoint), "needs one connection: use execute_in"
    return request.batch


async def _run_follow_up(pool: Pool, statements: Sequence[BoundStatement]) -> Results:
    """Run a follow-up whose batch was answered before: neither a cancellation nor an error may undo that answer."""
    if not statements:
        return []
    failure = "no connection became free in time"
    with trio.move_on_after(_FOLLOW_UP_TIMEOUT, shield=True):
        try:
            return await pool.run((), statements)
        except (DatabaseUnavailable, psycopg.Error) as error:
            failure = str(error)
    log_failed_follow_up(statements[0].statement.name, failure)
    return []


async def _run_in_parallel(pool: Pool, batches: Sequence[Batch]) -> Results:
    results: list[Results] = [[] for _ in batches]
    failures: list[Exception] = []

    async def run(index: int, batch: Batch) -> None:
        # An exception must not leave the task: the nursery would cancel the other batches.
        try:
            results[index] = await pool.run(batch.transactions, batch.follow_up)
        except Exception as error:
            failures.append(error)

    async with trio.open_nursery() as nursery:
        for index, batch in enumerate(batches):
            nursery.start_soon(run, index, batch)
    if failures:
        raise failures[0]
    return [transaction for of_batch in results for transaction in of_batch]


# -- on a caller's connection


async def execute_in(connection: AnyConnection, operation: Operation[T], pool: Pool) -> T:
    """Execute an operation on one connection: as part of the transaction that is open there, or, in autocommit without
    one, each of its transactions by itself (caller.py).

    The pool is for requests that must not become part of the caller's transaction.
    """

    async def run(request: Request) -> Results:
        if isinstance(request, OnOwnConnection):
            return await pool.run(request.batch.transactions, request.batch.follow_up)
        if isinstance(request, InSavepoint):
            return await run_in_savepoint(connection, request.batch.all_transactions)
        if isinstance(request, Copy):
            return await copy_in(connection, request)
        if isinstance(request, Script):
            return await run_script(connection, request)
        return await run_in_caller(connection, all_transactions(request))

    return await _execute_operation(operation, run)


async def execute_in_transaction(operation: Operation[T], pool: Pool) -> T:
    """Execute an operation on one connection of the pool, all its requests in one transaction."""
    async with pool.connection() as connection:
        with wrap_driver_errors(), translate_errors(connection):
            async with connection.transaction():
                return await execute_in(connection, operation, pool)


# The same loop is written twice, here and in blocking/executor.py: one awaits, the other does not.


async def _execute_operation(operation: Operation[T], run: Callable[[Request], Awaitable[Results]]) -> T:
    with wrap_driver_errors():
        try:
            request = next(operation)
            while True:
                try:
                    results = await run(request)
                except Exception as error:  # not Cancelled: a cancelled operation ends where it is
                    request = operation.throw(error)
                else:
                    request = operation.send(results)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
