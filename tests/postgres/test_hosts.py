"""Connecting: names, several hosts, refusals and timeouts."""

import psycopg
import pytest
import trio
from postgres_helpers import is_usable, open_proxy
from psycopg.conninfo import conninfo_to_dict

from trioboss.postgres import Connection


async def test_a_name_is_resolved_and_every_address_tried(server_dsn):
    async with open_proxy(server_dsn) as proxy:
        dsn = proxy.dsn.replace("host=127.0.0.1", "host=localhost")
        async with await Connection.connect(dsn, autocommit=True) as connection:
            assert await is_usable(connection)


async def test_a_second_host_is_tried_when_the_first_refuses(server_dsn):
    params = conninfo_to_dict(server_dsn)
    hosts, ports = f"127.0.0.1,{params['host']}", f"1,{params['port']}"
    async with await Connection.connect(server_dsn, host=hosts, port=ports) as connection:
        assert await is_usable(connection)


async def test_a_refused_connection_is_an_operational_error():
    with pytest.raises(psycopg.OperationalError, match="refused"):
        await Connection.connect("host=127.0.0.1 port=1 user=nobody")


async def test_a_name_that_cannot_be_resolved_is_an_operational_error():
    with pytest.raises(psycopg.OperationalError, match="resolve"):
        await Connection.connect("host=no-such-host.invalid user=nobody")


async def test_a_server_that_does_not_answer_runs_into_the_connect_timeout(server_dsn):
    async with open_proxy(server_dsn) as proxy:
        proxy.silent = True
        with trio.fail_after(60), pytest.raises(psycopg.errors.ConnectionTimeout):
            await Connection.connect(proxy.dsn, connect_timeout=2)


async def test_connecting_to_a_server_that_does_not_answer_can_be_cancelled(server_dsn):
    async with open_proxy(server_dsn) as proxy:
        proxy.silent = True
        with trio.fail_after(60), trio.move_on_after(0.1) as scope:
            await Connection.connect(proxy.dsn)

    assert scope.cancelled_caught
