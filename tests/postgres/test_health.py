"""Health checks: pings, and whether the server has closed an idle connection."""

import psycopg
import pytest
import trio
from postgres_helpers import is_usable, open_proxy, scalar, until_gone

from trioboss.postgres import open_connection


async def test_a_ping_is_answered(conn):
    await conn.ping()
    async with conn.transaction():
        await conn.ping()

    assert await is_usable(conn)


async def test_a_ping_executes_no_statement(conn, admin):
    await admin.execute("create extension if not exists pg_stat_statements")
    calls = "select sum(calls)::int from pg_stat_statements where query not like '%stat_statements%'"
    count = await scalar(admin, calls)

    for _ in range(5):
        await conn.ping()

    assert count == await scalar(admin, calls)
    await conn.execute("select 'a statement is counted'")
    assert count + 1 == await scalar(admin, calls)


async def test_a_ping_without_an_answer_closes_the_connection(server_dsn):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        await connection.ping()
        proxy.silent = True
        with trio.fail_after(60), pytest.raises(psycopg.OperationalError, match="did not answer"):
            await connection.ping(timeout=0.05)

        assert connection.closed


async def test_a_ping_in_a_cancelled_scope_sends_nothing(conn):
    with trio.CancelScope() as scope:
        scope.cancel()
        await conn.ping()

    assert scope.cancelled_caught
    assert await is_usable(conn)


async def test_a_ping_inside_a_pipeline_is_refused(conn):
    async with conn.pipeline():
        with pytest.raises(psycopg.ProgrammingError):
            await conn.ping()


async def test_a_connection_that_the_server_closed_is_stale(conn, admin):
    assert not conn.is_stale()
    pid = conn.info.backend_pid
    await admin.execute("select pg_terminate_backend(%s)", [pid])
    await until_gone(admin, pid)

    assert conn.is_stale()


async def test_a_connection_is_stale_as_soon_as_the_server_has_sent_its_fatal_error(server_dsn, admin):
    async with open_proxy(server_dsn) as proxy, open_connection(proxy.dsn) as connection:
        proxy.hold_open = True
        await admin.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])

        with trio.fail_after(60):
            while not connection.is_stale():
                await trio.lowlevel.checkpoint()

        assert not connection.closed


async def test_a_closed_connection_is_stale(conn):
    await conn.close()

    assert conn.is_stale()
