"""Drives conversations: on the pool, on one connection that is ours or the caller's, or by blocking.

Errors are thrown into the conversation, which may know what to do about them; what it does not
handle leaves it as it came.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
import trio

from trioboss.postgres.blocking import run_blocking
from trioboss.postgres.caller import run_in_caller
from trioboss.postgres.connection import Connection
from trioboss.postgres.conversation import Aside, Conversation, Copy, Request, Script
from trioboss.postgres.flush import Results
from trioboss.postgres.pool import Pool

__all__ = ["AnyConnection", "drive", "drive_blocking", "drive_in"]

T = TypeVar("T")

AnyConnection = Connection[Any] | psycopg.Connection[Any]


async def drive(conversation: Conversation[T], pool: Pool) -> T:
    """Run a conversation on our own connections, each request on whichever is free."""

    async def answer(request: Request) -> Results:
        if isinstance(request, Aside):
            request = request.flush
        assert not isinstance(request, Copy | Script), "needs one connection: use drive_in"
        return await pool.run(request.transactions)

    return await _drive(conversation, answer)


async def drive_in(connection: AnyConnection, conversation: Conversation[T], pool: Pool) -> T:
    """Run a conversation on one connection, as part of the transaction that is open there."""

    async def answer(request: Request) -> Results:
        if isinstance(request, Aside):
            return await pool.run(request.flush.transactions)
        if isinstance(request, Copy):
            return await _copy(connection, request)
        if isinstance(request, Script):
            return await _execute(connection, request)
        return await run_in_caller(connection, request.transactions)

    return await _drive(conversation, answer)


async def _drive(conversation: Conversation[T], answer: Callable[[Request], Awaitable[Results]]) -> T:
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


def drive_blocking(
    connection: psycopg.Connection[Any], conversation: Conversation[T], aside: psycopg.Connection[Any]
) -> T:
    """Run a conversation on a blocking connection; ``aside`` is our own, and may be the same one."""

    def answer(request: Request) -> Results:
        if isinstance(request, Aside):
            return run_blocking(aside, request.flush.transactions, prepare=True)
        if isinstance(request, Copy):
            return _copy_blocking(connection, request)
        if isinstance(request, Script):
            return _execute_blocking(connection, request)
        return run_blocking(connection, request.transactions, prepare=connection is aside)

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


def _copy_blocking(connection: psycopg.Connection[Any], request: Copy) -> Results:
    with connection.cursor().copy(request.statement.encode()) as copy:
        for block in request.blocks:
            copy.write(block)
    return []


def _execute_blocking(connection: psycopg.Connection[Any], request: Script) -> Results:
    connection.execute(request.text.encode())
    return []
