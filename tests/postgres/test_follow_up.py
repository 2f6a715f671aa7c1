"""A transaction that is sent along and not waited for."""

import gc
import logging

import psycopg
import pytest
import trio
from postgres_helpers import ADD, ECHO, ONE, as_int, is_usable, scalar, step, until_blocked

from trioboss.postgres import open_pool
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import Batch
from trioboss.postgres.wire import Pipeline
from trioboss.sql import Statement

BLOCK = Statement("block", "select pg_advisory_xact_lock($1::bigint)", ("key",))
WRONG = Statement("wrong", "select 1 / $1::int4", ("divisor",))


@pytest.fixture
async def held(admin):
    """The key of a lock that somebody holds until `pg_advisory_unlock`."""
    await admin.execute("select pg_advisory_lock(77)")
    yield 77
    await admin.execute("select pg_advisory_unlock_all()")


async def test_run_returns_when_its_own_transactions_have_ended(conn, admin, held):
    ((result,),) = await conn.run([[step(ADD, 1, 2)]], [step(BLOCK, held)])

    assert as_int(result) == 3
    assert conn.has_unread_follow_up
    await until_blocked(admin, conn.info.backend_pid)


async def test_results_stay_as_they_are_when_the_follow_up_is_read(conn):
    for _ in range(2):  # the second time all is prepared
        results = await conn.run([[step(ONE)]], [step(ECHO, "x")])
        await conn.read_follow_up()

    assert [len(transaction) for transaction in results] == [1]


async def test_the_next_run_waits_for_the_follow_up_and_gets_its_own_answer(conn, admin, held):
    await conn.run([[step(ONE)]], [step(BLOCK, held)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(is_usable, conn)
        await until_blocked(admin, conn.info.backend_pid)
        await admin.execute("select pg_advisory_unlock(77)")

    assert await is_usable(conn)
    assert not conn.has_unread_follow_up


async def test_no_run_keeps_those_before_it(conn):
    for _ in range(20):
        await conn.run([[step(ONE)]], [step(ECHO, "x")])
    gc.collect()

    assert sum(isinstance(thing, Pipeline) for thing in gc.get_objects()) <= 2


async def test_a_cancelled_run_leaves_the_follow_up_before_it_alone(conn, table):
    """It may be the word by which somebody learns of a job."""
    slow = Statement("slow", f"insert into {table.name} select 1, pg_sleep(0.1)::text", ())
    await conn.run([[step(ONE)]], [step(slow)])
    with trio.move_on_after(0.02):
        await conn.run([[step(ONE)]])
    await conn.read_follow_up()

    assert await table.rows() == [1]


async def test_the_follow_up_happens_after_the_commit_of_what_it_follows(conn, table):
    count = Statement("count", f"insert into {table.name} select count(*), 'seen' from {table.name}", ())
    await conn.run([[step(table.insert, 7, "a")]], [step(count)])
    await conn.read_follow_up()

    assert await table.rows() == [1, 7]


async def test_a_follow_up_that_fails_is_told_to_the_log_and_to_nobody_else(conn, caplog):
    with caplog.at_level(logging.WARNING):
        await conn.run([[step(ONE)]], [step(WRONG, 0)])
        assert await is_usable(conn)

    assert "wrong failed: division by zero" in caplog.text


async def test_an_error_of_the_transaction_is_raised_and_the_follow_up_read_all_the_same(conn, table):
    with pytest.raises(psycopg.errors.DivisionByZero):
        await conn.run([[step(WRONG, 0)]], [step(table.insert, 1, "a")])

    assert await is_usable(conn)
    assert await table.rows() == [1]


async def test_statements_of_a_follow_up_are_prepared_once(conn):
    for _ in range(3):
        await conn.run([[step(ONE)]], [step(ECHO, "x")])
    await conn.read_follow_up()

    assert await scalar(conn, "select count(*)::int from pg_prepared_statements where name = 'echo'") == 1


async def test_a_statement_that_went_stale_in_a_follow_up_is_prepared_anew(conn, caplog):
    await conn.run([[step(ONE)]], [step(ECHO, "x")])
    await conn.read_follow_up()
    await conn.execute("deallocate all")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await conn.run([], [step(ECHO, "x")])
            await conn.read_follow_up()

    assert caplog.text.count("echo failed") == 1


async def test_a_cancelled_run_leaves_the_connection_usable(conn, admin, held):
    with trio.move_on_after(0.05):
        await conn.run([[step(BLOCK, held)]], [step(ONE)])

    assert await is_usable(conn)


async def test_a_ping_hears_the_follow_up_out(conn, admin, held):
    await conn.run([[step(ONE)]], [step(ONE)])
    await conn.ping()

    assert not conn.has_unread_follow_up
    assert await is_usable(conn)


async def test_the_pool_lends_a_connection_only_when_its_follow_up_was_read(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        await pool.run([[step(ONE)]], [step(ECHO, "x")])
        async with pool.connection() as connection:
            assert not connection.has_unread_follow_up
            assert await scalar(connection, "select 42") == 42
        assert pool.statistics().opened == 1


async def test_the_pool_replaces_a_connection_that_was_lost_with_its_follow_up(server_dsn, admin):
    async with open_pool(server_dsn, size=1) as pool:
        await pool.run(
            [[step(ONE)]], [step(Statement("die", "select pg_terminate_backend(pg_backend_pid())", ()))]
        )
        async with pool.connection() as connection:
            assert await scalar(connection, "select 42") == 42
        assert pool.statistics().opened == 2


def ask(first, second=None):
    """A conversation of one request or two; its answer are the results of the first."""
    results = yield first
    if second is not None:
        yield second
    return results


async def test_a_follow_up_alone_follows_what_was_answered_before_it(server_dsn, table):
    async with open_pool(server_dsn, size=1) as pool:
        await execute(ask(Batch((step(ONE),)), Batch(follow_up=(step(table.insert, 1, "a"),))), pool)
        async with pool.connection():
            assert await table.rows() == [1]


async def test_a_follow_up_alone_that_fails_takes_nothing_back(server_dsn, caplog):
    async with open_pool(server_dsn, size=1) as pool:
        ((result,),) = await execute(ask(Batch((step(ADD, 1, 2),)), Batch(follow_up=(step(WRONG, 0),))), pool)
        async with pool.connection() as connection:
            assert await is_usable(connection)

    assert as_int(result) == 3
    assert "wrong failed" in caplog.text


async def test_nothing_to_run_needs_no_connection():
    async with open_pool("host=nowhere.invalid", timeout=0.01) as pool:
        assert await execute(ask(Batch()), pool) == []


async def test_who_is_patient_waits_for_the_follow_up_and_not_for_its_success(server_dsn, table, caplog):
    async with open_pool(server_dsn, size=1) as pool:
        await execute(
            ask(Batch((step(ONE),), follow_up=(step(table.insert, 1, "a"),), await_follow_up=True)), pool
        )
        assert await table.rows() == [1]
        ((result,),) = await execute(
            ask(Batch((step(ADD, 1, 2),), follow_up=(step(WRONG, 0),), await_follow_up=True)), pool
        )
        assert "wrong failed" in caplog.text

    assert as_int(result) == 3
