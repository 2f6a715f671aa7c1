"""Our transactions on a caller's connection, under trio."""

from contextlib import suppress

import psycopg
import pytest
import trio
from postgres_helpers import ADD, ECHO, as_int, bind

from trioboss.errors import UsageError
from trioboss.postgres import Connection, run_in_caller


async def test_a_callers_transaction_is_joined(conn, table):
    with suppress(ZeroDivisionError):
        async with conn.transaction():
            await run_in_caller(conn, [[bind(table.insert, 1, "a")], [bind(table.insert, 2, "b")]])
            raise ZeroDivisionError
    assert await table.rows() == []

    async with conn.transaction():
        await run_in_caller(conn, [[bind(table.insert, 3, "c")]])

    assert await table.rows() == [3]


async def test_the_implicit_transaction_of_psycopg_is_begun(server_dsn, table):
    async with await Connection.connect(server_dsn) as theirs:
        await run_in_caller(theirs, [[bind(table.insert, 1, "a")]])
        assert await table.rows() == []
        await theirs.rollback()

    assert await table.rows() == []


async def test_inside_a_callers_pipeline_the_transactions_are_part_of_it(server_dsn, table):
    async with await Connection.connect(server_dsn) as theirs:
        async with theirs.pipeline():
            await theirs.execute("select 1")
            ((result,),) = await run_in_caller(theirs, [[bind(ADD, 1, 2)]])
            await run_in_caller(theirs, [[bind(table.insert, 1, "a"), bind(table.insert, 2, "b")]])
            cursor = await theirs.execute("select 2")
            assert await cursor.fetchone() == (2,)
        assert await table.rows() == []

    assert as_int(result) == 3
    assert await table.rows() == [1, 2]


async def test_a_blocking_connection_does_not_block_the_other_tasks(server_dsn, conn, table):
    def connect():
        return psycopg.connect(server_dsn)

    await conn.execute("begin")
    await conn.execute(f"lock table {table.name}")
    theirs = await trio.to_thread.run_sync(connect)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_in_caller, theirs, [[bind(table.insert, 1, "a")]])
            await conn.execute("commit")
    assert await table.rows() == []
    await trio.to_thread.run_sync(theirs.commit)
    theirs.close()

    assert await table.rows() == [1]


async def test_an_asyncio_connection_is_refused():
    with pytest.raises(UsageError, match="AsyncConnection cannot be used under trio"):
        await run_in_caller(psycopg.AsyncConnection.__new__(psycopg.AsyncConnection), [])


async def test_a_connection_in_another_encoding_is_refused(server_dsn):
    async with await Connection.connect(server_dsn, client_encoding="latin1") as theirs:
        with pytest.raises(UsageError, match="LATIN1"):
            await run_in_caller(theirs, [[bind(ECHO, "ä")]])
