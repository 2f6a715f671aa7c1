"""Each fault of the proxy does what it promises, and affects no other connection."""

from contextlib import asynccontextmanager

import psycopg
import pytest
import trio

from benchmarks.harness.proxy import open_proxy, run_proxy
from trioboss.postgres import open_connection


@asynccontextmanager
async def connected(dsn):
    async with open_connection(dsn) as connection:
        connection.cancel_grace = 0.05  # seconds to wait for a silent server before the connection is closed
        yield connection


async def answer(connection, statement, seconds=10.0):
    """Return the rows of a statement; None if no answer arrives in time."""
    with trio.move_on_after(seconds):
        cursor = await connection.execute(statement)
        return await cursor.fetchall()
    return None


async def test_data_passes_through_a_proxy_without_faults(server_dsn):
    async with open_proxy(server_dsn) as proxy:
        async with connected(proxy.dsn) as connection:
            assert await answer(connection, "select 42") == [(42,)]

        assert proxy.accepted == 1


async def test_a_silent_connection_stays_silent_and_later_ones_are_not_affected(server_dsn):
    async with open_proxy(server_dsn) as proxy, connected(proxy.dsn) as one:
        proxy.silent = True
        assert await answer(one, "select 1", seconds=0.1) is None
        proxy.silent = False
        async with connected(proxy.dsn) as other:
            assert await answer(other, "select 2") == [(2,)]

        assert one.closed


async def test_one_connection_can_be_silenced_by_the_port_that_the_server_sees(server_dsn):
    # The test server has only a Unix socket, so a second proxy stands in for a server with TCP ports.
    async with (
        open_proxy(server_dsn) as server,
        open_proxy(server.dsn) as proxy,
        connected(proxy.dsn) as one,
        connected(proxy.dsn) as other,
    ):
        ports = sorted(connection.port for connection in proxy._connections)
        assert len(ports) == 2
        proxy.silent_ports.add(ports[0])
        answers = [await answer(each, "select 1", seconds=0.3) for each in (one, other)]

        assert sorted(answers, key=str) == [None, [(1,)]]


async def test_a_lost_commit_is_executed_and_its_connection_closed(server_dsn):
    async with open_proxy(server_dsn) as proxy, connected(proxy.dsn) as connection:
        proxy.lost_commits = 1
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("create table proxied (id int)")
        with psycopg.connect(server_dsn, autocommit=True) as direct:
            direct.execute("drop table proxied")

        assert proxy.lost_commits == 0


async def test_replies_after_a_marker_are_lost_and_the_connection_stays_open(server_dsn):
    async with open_proxy(server_dsn) as proxy, connected(proxy.dsn) as connection:
        proxy.lose_replies_to = b"marked"
        assert await answer(connection, "select 1") == [(1,)]
        assert await answer(connection, "select 'marked'", seconds=0.1) is None

        assert proxy.lost_replies >= 1


async def test_replies_after_a_marker_can_close_the_connection(server_dsn):
    async with open_proxy(server_dsn) as proxy, connected(proxy.dsn) as connection:
        proxy.close_on_loss, proxy.lose_replies_to = True, b"marked"
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("select 'marked'")


@pytest.mark.parametrize("towards_client", [True, False])
async def test_a_half_closed_connection_ends(server_dsn, towards_client):
    async with open_proxy(server_dsn) as proxy, connected(proxy.dsn) as connection:
        proxy.half_close(towards_client=towards_client)
        with trio.fail_after(60):
            while not connection.is_stale():
                await trio.lowlevel.checkpoint()


def test_a_proxy_in_a_thread_serves_blocking_programs(server_dsn):
    with run_proxy(server_dsn) as proxy, psycopg.connect(proxy.dsn) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
