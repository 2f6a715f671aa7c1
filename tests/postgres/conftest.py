"""A server for these tests, and connections to it."""

import secrets

import pytest
import trio
from postgres_helpers import Table

from trioboss.postgres import open_connection
from trioboss.testing import temporary_server


@pytest.fixture(scope="session")
def server_dsn():
    """The dsn of a server that counts statements and allows two-phase commits."""
    options = {"shared_preload_libraries": "pg_stat_statements", "max_prepared_transactions": 2}
    with temporary_server(**options) as server:
        yield server.dsn


@pytest.fixture
async def conn(server_dsn):
    """One of our sessions."""
    async with open_connection(server_dsn) as connection:
        yield connection


@pytest.fixture
async def admin(server_dsn):
    """A second session, to observe the server with."""
    async with open_connection(server_dsn) as connection:
        yield connection


@pytest.fixture
async def table(admin):
    """A table (i int, s text) for one test."""
    name = "t_" + secrets.token_hex(6)
    await admin.execute(f"create table {name} (i int, s text)")
    yield Table(name, admin)
    with trio.CancelScope(shield=True):
        await admin.execute(f"drop table if exists {name}")
