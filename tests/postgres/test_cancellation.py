"""A cancelled scope leaves a connection usable or closed, and no outcome is reported wrongly."""

from contextlib import aclosing

import psycopg
import pytest
import trio
from postgres_helpers import SLEEP, bind, is_usable, open_proxy, scalar, until_blocked
from trio.testing import wait_all_tasks_blocked

from trioboss.postgres import Connection, open_connection
from trioboss.postgres.connection import open_session
from trioboss.sql import Statement


@pytest.fixture
async def blocker(server_dsn):
    """A session that holds advisory lock 1, so that other sessions wait for it."""
    async with open_connection(server_dsn) as connection:
        await connection.execute("select pg_advisory_lock(1)")
        yield connection


async def cancel_when_blocked(admin, connection, operation, *args):
    """Run the operation, cancel it once its backend waits, and tell whether it was cancelled."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:

            async def cancel():
                await until_blocked(admin, connection.info.backend_pid)
                scope.cancel()

            nursery.start_soon(cancel)
            with trio.CancelScope() as scope:
                await operation(*args)
    return scope.cancelled_caught


async def cancel_and_unlock_later(admin, connection, blocker, operation):
    """Cancel the operation once it waits, and give a cancel request time to arrive before the lock is released."""

    async def cancel_then_unlock():
        await until_blocked(admin, connection.info.backend_pid)
        scope.cancel()
        await trio.sleep(0.1)
        await blocker.execute("select pg_advisory_unlock(1)")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_then_unlock)
            with trio.CancelScope() as scope:
                await operation()
    return scope.cancelled_caught


async def is_active(admin, connection) -> bool:
    state = await scalar(
        admin, "select state from pg_stat_activity where pid = %s", [connection.info.backend_pid]
    )
    return state == "active"


async def test_an_operation_in_a_cancelled_scope_sends_nothing(conn, table):
    with trio.CancelScope() as scope:
        scope.cancel()
        await conn.execute(f"insert into {table.name} values (1)")
    with trio.CancelScope() as other:
        other.cancel()
        await conn.run([[bind(table.insert, 1, "a")]])

    assert scope.cancelled_caught
    assert other.cancelled_caught
    assert await table.rows() == []


async def test_a_cancelled_query_is_cancelled_on_the_server(conn, admin, blocker):
    assert await cancel_when_blocked(admin, conn, conn.execute, "select pg_advisory_lock(1)")

    assert not await is_active(admin, conn)
    assert await is_usable(conn)


async def test_a_cancelled_run_is_cancelled_on_the_server(conn, admin, blocker):
    lock = Statement("lock", "select pg_advisory_lock(1)", ())

    for _ in range(2):  # first in a pipeline with its Parse, then prepared and without a pipeline
        assert await cancel_when_blocked(admin, conn, conn.run, [[bind(lock)]])

        assert not await is_active(admin, conn)
        assert await is_usable(conn)


async def test_a_cancelled_run_of_several_transactions_is_stopped_in_the_first(conn, admin, blocker, table):
    lock = Statement("lock", "select pg_advisory_lock(1)", ())

    assert await cancel_when_blocked(admin, conn, conn.run, [[bind(table.insert, 1, "a"), bind(lock)]])

    assert await table.rows() == []
    assert await is_usable(conn)


class LateCancel(Connection):
    """A connection whose cancel requests are sent too late, after the statement has completed."""

    blocker: Connection
    admin: Connection

    async def cancel_safe(self, *, timeout=30.0):
        await self.blocker.execute("select pg_advisory_unlock(1)")
        while await is_active(self.admin, self):
            pass
        await super().cancel_safe(timeout=timeout)


@pytest.fixture
async def late(server_dsn, blocker, admin):
    async with await LateCancel.connect(server_dsn, autocommit=True) as connection:
        connection.blocker, connection.admin = blocker, admin
        yield connection


async def test_a_query_that_completes_in_spite_of_the_cancellation_returns_its_result(late, admin, table):
    got = []

    async def insert():
        cursor = await late.execute(f"insert into {table.name} select 7 from pg_advisory_lock(1) returning i")
        got.append(await cursor.fetchone())
        await trio.lowlevel.checkpoint()
        got.append("not cancelled")

    assert await cancel_when_blocked(admin, late, insert)

    assert got == [(7,)]
    assert await table.rows() == [7]
    assert await is_usable(late)


async def test_a_run_that_completes_in_spite_of_the_cancellation_returns_its_result(late, admin, table):
    insert = Statement("ins", f"insert into {table.name} select 7 from pg_advisory_lock(1)", ())
    got = []

    async def run():
        got.extend(await late.run([[bind(insert)]]))

    assert not await cancel_when_blocked(admin, late, run)

    assert len(got) == 1
    assert await table.rows() == [7]
    assert await is_usable(late)


async def test_an_error_of_the_statement_itself_is_raised_in_spite_of_the_cancellation(late, admin):
    async def divide():
        with pytest.raises(psycopg.errors.DivisionByZero):
            await late.execute("select 1 / (case when pg_advisory_lock(1) is null then 1 else 0 end)")

    assert not await cancel_when_blocked(admin, late, divide)

    assert await is_usable(late)


async def test_a_run_whose_first_transaction_is_committed_is_not_cancelled(conn, admin, blocker, table):
    lock = Statement("lock", "select pg_advisory_lock(1)", ())
    got = []

    async def run():
        got.extend(await conn.run([[bind(table.insert, 1, "a")], [bind(lock), bind(table.insert, 2, "b")]]))

    conn.cancel_retry = 0.001
    assert not await cancel_and_unlock_later(admin, conn, blocker, run)

    assert [len(transaction) for transaction in got] == [1, 2]
    assert await table.rows() == [1, 2]


async def test_a_transaction_that_is_cancelled_is_rolled_back(conn, admin, blocker, table):
    async def work():
        async with conn.transaction():
            await conn.execute(f"insert into {table.name} values (1)")
            await conn.execute("select pg_advisory_lock(1)")

    assert await cancel_when_blocked(admin, conn, work)

    assert await table.rows() == []
    assert await is_usable(conn)


async def test_a_transaction_cancelled_before_its_commit_is_rolled_back(conn, table):
    with trio.CancelScope() as scope:
        async with conn.transaction():
            await conn.execute(f"insert into {table.name} values (1)")
            scope.cancel()

    assert scope.cancelled_caught
    assert await table.rows() == []
    assert await is_usable(conn)


async def test_a_cancellation_does_not_interrupt_a_commit(conn, admin, blocker, table):
    # A deferred trigger makes the COMMIT itself wait.
    await admin.execute(
        f"create function {table.name}_wait() returns trigger language plpgsql as "
        "'begin perform pg_advisory_lock(1); return null; end';"
        f"create constraint trigger wait after insert on {table.name} deferrable initially deferred "
        f"for each row execute function {table.name}_wait()"
    )

    async def work():
        async with conn.transaction():
            await conn.execute(f"insert into {table.name} values (1)")

    conn.cancel_retry = 0.001
    assert not await cancel_and_unlock_later(admin, conn, blocker, work)

    assert await table.rows() == [1]
    await admin.execute(f"drop function {table.name}_wait cascade")


async def test_leaving_a_connections_block_in_a_cancelled_scope_closes_it(server_dsn, table):
    with trio.CancelScope() as scope:
        async with await Connection.connect(server_dsn) as connection:
            await connection.execute(f"insert into {table.name} values (1)")
            scope.cancel()

    assert connection.closed
    assert await table.rows() == []


async def test_a_cancelled_pipeline_leaves_the_connection_usable_or_closed(conn, admin, blocker):
    async def work():
        async with conn.pipeline():
            for _ in range(3):
                await conn.execute("select pg_advisory_lock(1)")

    assert await cancel_when_blocked(admin, conn, work)

    assert conn.closed or await is_usable(conn)


async def test_a_cancelled_executemany_leaves_the_connection_usable_or_closed(conn, admin, blocker):
    async def work():
        await conn.cursor().executemany("select pg_advisory_lock(%s)", [(1,), (1,)], returning=True)

    assert await cancel_when_blocked(admin, conn, work)

    assert conn.closed or await is_usable(conn)


async def test_a_cancelled_copy_in_leaves_no_rows(conn, table):
    with trio.move_on_after(0.05) as scope:
        async with conn.cursor().copy(f"copy {table.name} from stdin") as copy:
            while True:
                await copy.write_row((1, "x" * 1000))

    assert scope.cancelled_caught
    assert await table.rows() == []
    assert await is_usable(conn)


async def test_a_copy_in_that_is_cancelled_before_its_end_leaves_no_rows(conn, table):
    with trio.CancelScope() as scope:
        async with conn.cursor().copy(f"copy {table.name} from stdin") as copy:
            await copy.write_row((1, "x"))
            scope.cancel()

    assert scope.cancelled_caught
    assert await table.rows() == []
    assert await is_usable(conn)


async def test_a_cancelled_copy_out_leaves_the_connection_usable(conn):
    with trio.move_on_after(0.05) as scope:
        async with conn.cursor().copy("copy (select generate_series(1, 10000000)) to stdout") as copy:
            while await copy.read():
                await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert await is_usable(conn)


async def test_a_cancelled_stream_leaves_the_connection_usable(conn):
    with trio.move_on_after(0.05) as scope:
        async with aclosing(conn.cursor().stream("select generate_series(1, 10000000)")) as rows:
            async for _ in rows:
                pass

    assert scope.cancelled_caught
    assert await is_usable(conn)


async def test_a_cancelled_server_side_cursor_leaves_the_connection_usable(conn, admin, blocker):
    async def work():
        async with conn.transaction(), conn.cursor("c") as cursor:
            await cursor.execute("select generate_series(1, 5), pg_advisory_lock(1)")
            await cursor.fetchall()

    assert await cancel_when_blocked(admin, conn, work)

    assert await is_usable(conn)


async def test_a_task_cancelled_while_it_waits_for_the_connection_does_not_disturb_it(conn, admin, blocker):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(conn.execute, "select pg_advisory_lock(1)")
        await until_blocked(admin, conn.info.backend_pid)
        with trio.move_on_after(0.01) as scope:
            await conn.execute("select 1")
        await blocker.execute("select pg_advisory_unlock(1)")

    assert scope.cancelled_caught
    assert await is_usable(conn)


async def test_a_connection_whose_server_does_not_answer_is_closed_after_the_grace(server_dsn, caplog):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        connection.cancel_grace = 0.2
        proxy.silent = True
        with trio.fail_after(60), trio.move_on_after(0.05) as scope:
            await connection.run([[bind(SLEEP, 0)]])

        assert scope.cancelled_caught
        assert connection.closed
    assert "closing the connection" in caplog.text


async def test_a_grace_that_is_shortened_applies_to_clean_up_under_way(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        connection.cancel_grace = 3600
        proxy.silent = True
        ended = trio.Event()

        async def run():
            try:
                await connection.run([[bind(SLEEP, 0)]])
            finally:
                ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.move_on_after(30, shield=True) as limit:
                await wait_all_tasks_blocked()
                connection.cancel_grace = 0
                await ended.wait()
            proxy.close_silent()  # else a failure of this test would take an hour

        assert not limit.cancelled_caught


async def test_a_session_that_is_being_opened_needs_no_clean_up(server_dsn, mock_clock):
    async with open_proxy(server_dsn) as proxy, trio.open_nursery() as nursery:
        proxy.lose_replies_to = b"set_config"
        nursery.start_soon(open_session, proxy.dsn)
        while not proxy.lost_replies:
            await trio.lowlevel.checkpoint()
        mock_clock.autojump_threshold = 0.05  # the time goes on only if something waits for a limit
        started = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() == started


async def test_a_rollback_without_an_answer_closes_the_connection_after_the_grace(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        connection.cancel_grace = 0.2
        with trio.fail_after(60), trio.CancelScope() as scope:
            async with connection.transaction():
                proxy.silent = True
                scope.cancel()

        assert connection.closed
