"""Follow-ups: transactions that are sent along and not waited for."""

import gc
import logging

import psycopg
import pytest
import trio
from postgres_helpers import ADD, ECHO, ONE, as_int, bind, is_usable, scalar, until_blocked

from trioboss.postgres import open_pool
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import Batch
from trioboss.postgres.wire import Pipeline
from trioboss.sql import Statement

BLOCK = Statement("block", "select pg_advisory_xact_lock($1::bigint)", ("key",))
WRONG = Statement("wrong", "select 1 / $1::int4", ("divisor",))


@pytest.fixture
async def held(admin):
    """The key of an advisory lock that another session holds until `pg_advisory_unlock`."""
    await admin.execute("select pg_advisory_lock(77)")
    yield 77
    await admin.execute("select pg_advisory_unlock_all()")


async def test_run_returns_when_its_own_transactions_have_ended(conn, admin, held):
    ((result,),) = await conn.run([[bind(ADD, 1, 2)]], [bind(BLOCK, held)])

    assert as_int(result) == 3
    assert conn.has_unread_follow_up
    await until_blocked(admin, conn.info.backend_pid)


async def test_reading_the_follow_up_does_not_change_the_results(conn):
    for _ in range(2):  # the second time the statements are prepared
        results = await conn.run([[bind(ONE)]], [bind(ECHO, "x")])
        await conn.read_follow_up()

    assert [len(transaction) for transaction in results] == [1]


async def test_the_next_run_waits_for_the_follow_up_and_gets_its_own_results(conn, admin, held):
    await conn.run([[bind(ONE)]], [bind(BLOCK, held)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(is_usable, conn)
        await until_blocked(admin, conn.info.backend_pid)
        await admin.execute("select pg_advisory_unlock(77)")

    assert await is_usable(conn)
    assert not conn.has_unread_follow_up


async def test_a_pipeline_does_not_keep_earlier_pipelines_in_memory(conn):
    for _ in range(20):
        await conn.run([[bind(ONE)]], [bind(ECHO, "x")])
    gc.collect()

    assert sum(type(found) is Pipeline for found in gc.get_objects()) <= 2


async def test_a_cancelled_run_does_not_cancel_the_follow_up_before_it(conn, table):
    # That follow-up may be the notification of a job.
    slow = Statement("slow", f"insert into {table.name} select 1, pg_sleep(0.1)::text", ())
    await conn.run([[bind(ONE)]], [bind(slow)])
    with trio.move_on_after(0.02):
        await conn.run([[bind(ONE)]])
    await conn.read_follow_up()

    assert await table.rows() == [1]


async def test_the_follow_up_runs_after_the_commit_of_the_transactions(conn, table):
    count = Statement("count", f"insert into {table.name} select count(*), 'seen' from {table.name}", ())
    await conn.run([[bind(table.insert, 7, "a")]], [bind(count)])
    await conn.read_follow_up()

    assert await table.rows() == [1, 7]


async def test_a_follow_up_that_fails_is_only_logged(conn, caplog):
    with caplog.at_level(logging.WARNING):
        await conn.run([[bind(ONE)]], [bind(WRONG, 0)])
        assert await is_usable(conn)

    assert "wrong failed: division by zero" in caplog.text


async def test_after_an_error_of_a_transaction_the_follow_up_still_runs(conn, table):
    with pytest.raises(psycopg.errors.DivisionByZero):
        await conn.run([[bind(WRONG, 0)]], [bind(table.insert, 1, "a")])

    assert await is_usable(conn)
    assert await table.rows() == [1]


async def test_statements_of_a_follow_up_are_prepared_once(conn):
    for _ in range(3):
        await conn.run([[bind(ONE)]], [bind(ECHO, "x")])
    await conn.read_follow_up()

    assert await scalar(conn, "select count(*)::int from pg_prepared_statements where name = 'echo'") == 1


async def test_a_statement_that_went_stale_in_a_follow_up_is_prepared_again(conn, caplog):
    await conn.run([[bind(ONE)]], [bind(ECHO, "x")])
    await conn.read_follow_up()
    await conn.execute("deallocate all")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await conn.run([], [bind(ECHO, "x")])
            await conn.read_follow_up()

    assert caplog.text.count("echo failed") == 1


async def test_a_cancelled_run_leaves_the_connection_usable(conn, admin, held):
    with trio.move_on_after(0.05):
        await conn.run([[bind(BLOCK, held)]], [bind(ONE)])

    assert await is_usable(conn)


async def test_a_ping_reads_the_follow_up(conn, admin, held):
    await conn.run([[bind(ONE)]], [bind(ONE)])
    await conn.ping()

    assert not conn.has_unread_follow_up
    assert await is_usable(conn)


async def test_a_connection_is_checked_out_only_after_its_follow_up_was_read(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        await pool.run([[bind(ONE)]], [bind(ECHO, "x")])
        async with pool.connection() as connection:
            assert not connection.has_unread_follow_up
            assert await scalar(connection, "select 42") == 42
        assert pool.statistics().opened == 1


async def test_a_connection_that_was_lost_with_its_follow_up_is_replaced(server_dsn, admin):
    async with open_pool(server_dsn, size=1) as pool:
        await pool.run(
            [[bind(ONE)]], [bind(Statement("terminate", "select pg_terminate_backend(pg_backend_pid())", ()))]
        )
        async with pool.connection() as connection:
            assert await scalar(connection, "select 42") == 42
        assert pool.statistics().opened == 2


def request(first, second=None):
    """An operation of one request or two, which returns the results of the first."""
    results = yield first
    if second is not None:
        yield second
    return results


async def test_a_batch_of_nothing_but_a_follow_up_runs_after_the_batch_before_it(server_dsn, table):
    async with open_pool(server_dsn, size=1) as pool:
        await execute(request(Batch((bind(ONE),)), Batch(follow_up=(bind(table.insert, 1, "a"),))), pool)
        async with pool.connection():
            assert await table.rows() == [1]


async def test_a_batch_of_nothing_but_a_follow_up_may_fail(server_dsn, caplog):
    async with open_pool(server_dsn, size=1) as pool:
        ((result,),) = await execute(
            request(Batch((bind(ADD, 1, 2),)), Batch(follow_up=(bind(WRONG, 0),))), pool
        )
        async with pool.connection() as connection:
            assert await is_usable(connection)

    assert as_int(result) == 3
    assert "wrong failed" in caplog.text


async def test_an_empty_batch_needs_no_connection():
    async with open_pool("host=nowhere.invalid", timeout=0.01) as pool:
        assert await execute(request(Batch()), pool) == []


async def test_await_follow_up_waits_for_the_end_of_the_follow_up_and_not_for_its_success(
    server_dsn, table, caplog
):
    async with open_pool(server_dsn, size=1) as pool:
        await execute(
            request(Batch((bind(ONE),), follow_up=(bind(table.insert, 1, "a"),), await_follow_up=True)), pool
        )
        assert await table.rows() == [1]
        ((result,),) = await execute(
            request(Batch((bind(ADD, 1, 2),), follow_up=(bind(WRONG, 0),), await_follow_up=True)), pool
        )
        assert "wrong failed" in caplog.text

    assert as_int(result) == 3
