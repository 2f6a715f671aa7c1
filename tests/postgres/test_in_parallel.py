"""Batches that do not depend on each other, in one request."""

import pytest
import trio
from postgres_helpers import ADD, ECHO, as_int, bind

from trioboss.errors import StatementFailed
from trioboss.postgres import open_pool
from trioboss.postgres.executor import execute, execute_in
from trioboss.postgres.operation import Batch, InParallel
from trioboss.sql import Statement

LOCK = Statement(
    "lock",
    "select pg_advisory_lock($1::bigint), pg_advisory_unlock($1::bigint)",
    ("key",),
)
WRONG = Statement("wrong", "select 1 / $1::int4", ("divisor",))


def in_parallel(*batches):
    """An operation of one request, which returns the results."""
    return (yield InParallel(batches))


async def test_the_results_of_all_batches_are_returned_in_order(server_dsn):
    async with open_pool(server_dsn, size=2) as pool:
        results = await execute(in_parallel(Batch((bind(ADD, 1, 2),)), Batch((bind(ADD, 3, 4),))), pool)

    assert [as_int(result) for (result,) in results] == [3, 7]


async def test_a_batch_that_waits_does_not_delay_the_others(server_dsn, admin, table):
    await admin.execute("select pg_advisory_lock(78)")
    async with open_pool(server_dsn, size=2) as pool, trio.open_nursery() as nursery:
        both = in_parallel(Batch((bind(LOCK, 78),)), Batch((bind(table.insert, 1, "a"),)))
        nursery.start_soon(execute, both, pool)
        with trio.fail_after(60):
            while await table.rows() != [1]:
                pass
        await admin.execute("select pg_advisory_unlock(78)")


async def test_a_batch_that_fails_is_raised_and_stops_none_of_the_others(server_dsn, table):
    async with open_pool(server_dsn, size=2) as pool:
        with pytest.raises(StatementFailed, match="division by zero"):
            await execute(in_parallel(Batch((bind(WRONG, 0),)), Batch((bind(table.insert, 1, "a"),))), pool)

    assert await table.rows() == [1]


async def test_a_pool_of_one_connection_runs_the_batches_one_after_the_other(server_dsn):
    async with open_pool(server_dsn, size=1) as pool:
        results = await execute(in_parallel(Batch((bind(ECHO, "a"),)), Batch((bind(ECHO, "b"),))), pool)

    assert [result.get_value(0, 0) for (result,) in results] == [b"a", b"b"]


async def test_on_a_callers_connection_all_batches_are_part_of_its_transaction(server_dsn, conn, table):
    async with open_pool(server_dsn, size=1) as pool, conn.transaction(force_rollback=True):
        first, second = Batch((bind(table.insert, 1, "a"),)), Batch((bind(table.insert, 2, "a"),))
        results = await execute_in(conn, in_parallel(first, second), pool)

    assert [as_int(result) for (result,) in results] == [1, 2]
    assert await table.rows() == []
