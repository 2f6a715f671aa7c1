"""Drives conversations: on the pool, on one connection that is ours or the caller's, or by blocking.

Errors are thrown into the conversation, which may know what to do about them; what it does not
handle leaves it as it came.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, TypeVar

import psycopg
import trio
from psycopg import pq

from trioboss.errors import DatabaseUnavailable, UsageError
from trioboss.postgres.blocking import run_blocking
from trioboss.postgres.caller import check_caller, run_in_caller
from trioboss.postgres.connection import Connection
from trioboss.postgres.operation import (
    Batch,
    Copy,
    InParallel,
    InSavepoint,
    OnOwnConnection,
    Operation,
    Request,
    Script,
)
from trioboss.postgres.pool import Pool
from trioboss.postgres.waiting import logger
from trioboss.postgres.wire import BoundStatement, Results, Transactions

__all__ = [
    "AnyConnection",
    "BlockingConnection",
    "execute",
    "execute_blocking",
    "execute_in",
    "joined",
    "joined_blocking",
]

T = TypeVar("T")

_FOLLOW_UP_PATIENCE = 5.0  # seconds

BlockingConnection = psycopg.Connection[Any]
AnyConnection = Connection[Any] | BlockingConnection


async def execute(conversation: Operation[T], pool: Pool) -> T:
    """Run a conversation on our own connections, each request on whichever is free."""

    async def answer(request: Request) -> Results:
        if isinstance(request, InParallel):
            return await _run_together(pool, request.flushes)
        flush = request if isinstance(request, Batch) else _unwrap(request)
        if not flush.transactions:
            return await _run_follow_up(pool, flush.follow_up)
        return await pool.run(flush.transactions, flush.follow_up, patient=flush.patient)

    return await _execute_operation(conversation, answer)


async def execute_in(connection: AnyConnection, conversation: Operation[T], pool: Pool) -> T:
    """Run a conversation on one connection, as part of the transaction that is open there."""

    async def answer(request: Request) -> Results:
        if isinstance(request, OnOwnConnection):
            return await pool.run(request.flush.transactions, request.flush.follow_up)
        if isinstance(request, InSavepoint):
            return await _attempt(connection, request.flush)
        if isinstance(request, Copy):
            return await _copy(connection, request)
        if isinstance(request, Script):
            return await _execute(connection, request)
        return await run_in_caller(connection, _all_of(request))

    return await _execute_operation(conversation, answer)


@asynccontextmanager
async def joined(connection: AnyConnection) -> AsyncIterator[None]:
    """A block whose requests happen all or none, on the caller's connection.

    Part of the caller's transaction if there is one, or if psycopg is about to open one; else one of its own.
    """
    check_caller(connection)
    if _opens_by_itself(connection):
        yield
    elif isinstance(connection, psycopg.Connection):
        async with _in_thread(connection.transaction()):
            yield
    else:
        async with connection.transaction():
            yield


@contextmanager
def joined_blocking(connection: BlockingConnection) -> Iterator[None]:
    """`joined` for blocking code."""
    with nullcontext() if _opens_by_itself(connection) else connection.transaction():
        yield


def _opens_by_itself(connection: AnyConnection) -> bool:
    """Whether psycopg will begin a transaction with the next statement, and leave its end to the caller."""
    return not connection.autocommit and connection.info.transaction_status == pq.TransactionStatus.IDLE


@asynccontextmanager
async def _in_thread(manager: AbstractContextManager[object]) -> AsyncIterator[None]:
    """Enter and leave a blocking context manager without blocking."""
    await trio.to_thread.run_sync(manager.__enter__)
    try:
        yield
    except BaseException as error:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(manager.__exit__, type(error), error, error.__traceback__)
        raise
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(manager.__exit__, None, None, None)


async def _execute_operation(
    conversation: Operation[T], answer: Callable[[Request], Awaitable[Results]]
) -> T:
    try:
        request = next(conversation)
        while True:
            try:
                results = await answer(request)
            except Exception as error:
                request = conversation.throw(error)
            else:
                request = conversation.send(results)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _unwrap(request: Request) -> Batch:
    """On our own connections nobody's transaction has to be spared."""
    assert isinstance(request, OnOwnConnection | InSavepoint), "needs one connection: use execute_in"
    return request.flush


async def _run_follow_up(pool: Pool, steps: Sequence[BoundStatement]) -> Results:
    """Run what follows a flush that was answered: neither a cancellation nor a failure takes that answer back."""
    if not steps:
        return []
    failure = "no connection became free in time"
    with trio.move_on_after(_FOLLOW_UP_PATIENCE, shield=True):
        try:
            return await pool.run((), steps)
        except (DatabaseUnavailable, psycopg.Error) as error:
            failure = str(error)
    logger.warning("%s failed: %s", steps[0].statement.name, failure)
    return []


async def _run_together(pool: Pool, flushes: Sequence[Batch]) -> Results:
    answers: list[Results] = [[] for _ in flushes]
    failures: list[Exception] = []

    async def run(place: int, flush: Batch) -> None:
        try:
            answers[place] = await pool.run(flush.transactions, flush.follow_up)
        except Exception as error:
            failures.append(error)

    async with trio.open_nursery() as nursery:
        for place, flush in enumerate(flushes):
            nursery.start_soon(run, place, flush)
    if failures:
        raise failures[0]
    return [transaction for answer in answers for transaction in answer]


def _all_of(request: Batch | InParallel) -> Transactions:
    flushes = request.flushes if isinstance(request, InParallel) else (request,)
    return [transaction for flush in flushes for transaction in flush.all]


async def _attempt(connection: AnyConnection, flush: Batch) -> Results:
    """Undo what fails, and no more: to a savepoint, or the transaction that would begin with it."""
    opens = _opens_by_itself(connection)
    try:
        async with joined(connection):
            return await run_in_caller(connection, flush.all)
    except psycopg.Error:
        if opens:
            await _roll_back(connection)
        raise


async def _roll_back(connection: AnyConnection) -> None:
    if isinstance(connection, psycopg.Connection):
        await trio.to_thread.run_sync(connection.rollback)
    else:
        await connection.rollback()


def _attempt_blocking(connection: BlockingConnection, flush: Batch, *, prepare: bool) -> Results:
    opens = _opens_by_itself(connection)
    try:
        with joined_blocking(connection):
            return run_blocking(connection, flush.all, prepare=prepare)
    except psycopg.Error:
        if opens:
            connection.rollback()
        raise


async def _copy(connection: AnyConnection, request: Copy) -> Results:
    if isinstance(connection, psycopg.Connection):
        return await trio.to_thread.run_sync(_copy_blocking, connection, request)
    async with connection.cursor().copy(request.statement.encode()) as copy:
        for block in request.blocks:
            await copy.write(block)
    return []


async def _execute(connection: AnyConnection, request: Script) -> Results:
    if isinstance(connection, psycopg.Connection):
        return await trio.to_thread.run_sync(_execute_blocking, connection, request)
    await connection.execute(request.text.encode())
    return []


def execute_blocking(
    connection: BlockingConnection, conversation: Operation[T], aside: BlockingConnection
) -> T:
    """Run a conversation on a blocking connection; ``aside`` is our own, and may be the same one."""
    if not isinstance(connection, psycopg.Connection):
        raise UsageError(f"conn: {type(connection).__qualname__} is not a blocking psycopg.Connection")

    def answer(request: Request) -> Results:
        if isinstance(request, OnOwnConnection):
            return run_blocking(aside, request.flush.all, prepare=True)
        if isinstance(request, InSavepoint):
            return _attempt_blocking(connection, request.flush, prepare=connection is aside)
        if isinstance(request, Copy):
            return _copy_blocking(connection, request)
        if isinstance(request, Script):
            return _execute_blocking(connection, request)
        return run_blocking(connection, _all_of(request), prepare=connection is aside)

    try:
        request = next(conversation)
        while True:
            try:
                results = answer(request)
            except Exception as error:
                request = conversation.throw(error)
            else:
                request = conversation.send(results)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _copy_blocking(connection: BlockingConnection, request: Copy) -> Results:
    with connection.cursor().copy(request.statement.encode()) as copy:
        for block in request.blocks:
            copy.write(block)
    return []


def _execute_blocking(connection: BlockingConnection, request: Script) -> Results:
    connection.execute(request.text.encode())
    return []
