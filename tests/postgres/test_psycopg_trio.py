"""psycopg's own interface under trio."""

import socket
from contextlib import aclosing, suppress

import attrs
import psycopg
import pytest
import trio
from postgres_helpers import is_usable, scalar, until_blocked
from psycopg.rows import dict_row
from psycopg.types import TypeInfo
from psycopg.waiting import Wait

from trioboss.postgres import Connection
from trioboss.postgres.connection.waiting import GeneratorRun


async def test_leaving_the_block_commits_and_closes(server_dsn, table):
    async with await Connection.connect(server_dsn) as connection:
        await connection.execute(f"insert into {table.name} values (1)")

    assert connection.closed
    assert await table.rows() == [1]


async def test_leaving_the_block_by_an_error_rolls_back_and_closes(server_dsn, table):
    connection = await Connection.connect(server_dsn)

    async def fail():
        async with connection:
            await connection.execute(f"insert into {table.name} values (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()

    assert connection.closed
    assert await table.rows() == []


async def test_a_savepoint_is_rolled_back_alone(conn, table):
    async with conn.transaction():
        await conn.execute(f"insert into {table.name} values (1)")
        with suppress(ZeroDivisionError):
            async with conn.transaction():
                await conn.execute(f"insert into {table.name} values (2)")
                raise ZeroDivisionError

    assert await table.rows() == [1]


async def test_psycopgs_rollback_exception_is_suppressed(conn, table):
    async with conn.transaction() as transaction:
        await conn.execute(f"insert into {table.name} values (1)")
        raise psycopg.Rollback(transaction)

    assert await table.rows() == []
    assert await is_usable(conn)


async def test_row_factories_and_binary_results(server_dsn):
    async with await Connection.connect(server_dsn, row_factory=dict_row) as connection:
        cursor = await connection.execute("select 1 as a, 'b' as b", binary=True)

        assert await cursor.fetchone() == {"a": 1, "b": "b"}


async def test_psycopg_prepares_repeated_statements(server_dsn):
    async with await Connection.connect(server_dsn) as connection:
        for n in range(8):
            assert n == await scalar(connection, "select %s::int4", [n])

        assert (
            await scalar(
                connection, "select count(*)::int from pg_prepared_statements where statement like '%int4'"
            )
            == 1
        )


async def test_a_pipeline_returns_each_result_to_its_cursor(conn):
    async with conn.pipeline() as pipeline:
        cursors = [await conn.execute("select %s::int4", [n]) for n in range(300)]
        await pipeline.sync()
        got = [(await cursor.fetchone())[0] for cursor in cursors]

    assert list(range(300)) == got


async def test_a_pipeline_that_fills_both_socket_buffers_completes(conn):
    blob = "x" * 200_000

    with trio.fail_after(60):
        async with conn.pipeline():
            cursors = [await conn.execute("select %s::text", [blob]) for _ in range(50)]
            got = [len((await cursor.fetchone())[0]) for cursor in cursors]

    assert got == [200_000] * 50


async def test_a_transaction_inside_a_pipeline(conn, table):
    async with conn.pipeline():
        async with conn.transaction():
            await conn.execute(f"insert into {table.name} values (1)")
        with suppress(ZeroDivisionError):
            async with conn.transaction():
                await conn.execute(f"insert into {table.name} values (2)")
                raise ZeroDivisionError

    assert await table.rows() == [1]


async def test_executemany_returns_every_row(conn, table):
    cursor = conn.cursor()
    await cursor.executemany(
        f"insert into {table.name} values (%s) returning i", [(n,) for n in range(200)], returning=True
    )
    got = [(await cursor.fetchone())[0]]
    while cursor.nextset():
        got.append((await cursor.fetchone())[0])

    assert list(range(200)) == got


@attrs.define(eq=False)
class Iterations:
    """Counts how often another task can run."""

    count: int = 0

    async def keep_counting(self):
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1


async def test_writing_a_long_copy_does_not_starve_the_other_tasks(conn, table):
    iterations = Iterations()
    async with trio.open_nursery() as nursery:
        async with conn.cursor().copy(f"copy {table.name} from stdin") as copy:
            nursery.start_soon(iterations.keep_counting)
            for _ in range(2000):
                await copy.write("1\tx\n")
            seen = iterations.count
        nursery.cancel_scope.cancel()

    assert seen > 100


async def test_filling_a_long_pipeline_does_not_starve_the_other_tasks(conn):
    iterations = Iterations()
    async with trio.open_nursery() as nursery:
        async with conn.pipeline():
            nursery.start_soon(iterations.keep_counting)
            for _ in range(2000):
                await conn.execute("select 1")
            seen = iterations.count
        nursery.cancel_scope.cancel()

    assert seen > 100


async def test_one_long_generator_does_not_starve_the_other_tasks():
    def generate():
        for _ in range(2000):
            yield Wait.RW
        return iterations.count

    iterations = Iterations()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(iterations.keep_counting)
            seen = await GeneratorRun(generate(), ours.fileno()).run_to_end()
            nursery.cancel_scope.cancel()

    assert seen > 100


async def test_copy_in_and_copy_out(conn, table):
    async with conn.cursor().copy(f"copy {table.name} from stdin") as copy:
        for n in range(20_000):
            await copy.write_row((n, "some text that fills the buffers of the socket"))
    seen = 0
    async with conn.cursor().copy(f"copy {table.name} to stdout") as copy:
        async for _ in copy.rows():
            seen += 1

    assert 20_000 == seen == len(await table.rows())


async def test_a_copy_in_that_fails_leaves_no_rows(conn, table):
    with suppress(ZeroDivisionError):
        async with conn.cursor().copy(f"copy {table.name} from stdin") as copy:
            await copy.write_row((1, "a"))
            raise ZeroDivisionError

    assert await table.rows() == []
    assert await is_usable(conn)


async def test_a_server_side_cursor_iterates(conn):
    async with conn.transaction(), conn.cursor("some_cursor") as cursor:
        cursor.itersize = 30
        await cursor.execute("select generate_series(1, 100)")
        got = [n async for (n,) in cursor]

    assert list(range(1, 101)) == got


async def test_a_stream_yields_row_by_row(conn):
    got = [n async for (n,) in conn.cursor().stream("select generate_series(1, 1000)")]

    assert list(range(1, 1001)) == got


async def test_a_stream_that_is_left_early_leaves_the_connection_usable(conn):
    async with aclosing(conn.cursor().stream("select generate_series(1, 10000000)")) as rows:
        async for _ in rows:
            break

    assert await is_usable(conn)


async def test_type_information_is_fetched(conn):
    info = await TypeInfo.fetch(conn, "int4")

    assert info.oid == 23


async def test_two_phase_commit(server_dsn, table):
    connection = await Connection.connect(server_dsn)
    async with connection:
        await connection.tpc_begin(connection.xid(1, table.name, "x"))
        await connection.execute(f"insert into {table.name} values (1)")
        await connection.tpc_prepare()
        assert await table.rows() == []
        await connection.tpc_commit()

    assert await table.rows() == [1]


async def test_closing_wakes_a_task_that_waits_on_the_connection(conn, admin):
    raised = []

    async def wait():
        try:
            await conn.execute("select pg_sleep(60)")
        except psycopg.OperationalError as error:
            raised.append(error)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await until_blocked(admin, conn.info.backend_pid, on="Timeout")
            await conn.close()

    assert len(raised) == 1


async def test_a_task_that_would_deadlock_with_itself_gets_an_error(conn):
    async with aclosing(conn.cursor().stream("select generate_series(1, 3)")) as rows:
        async for _ in rows:
            with pytest.raises(RuntimeError, match="deadlock"):
                await conn.execute("select 1")

    assert await is_usable(conn)
