from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import trioboss
from trioboss.testing import temporary_database, temporary_server


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """One server for the whole run. It is not durable, which makes it fast."""
    with temporary_server() as server:
        yield server.dsn


@pytest.fixture(scope="session")
def template(server_dsn: str) -> Iterator[object]:
    """The name of a database with the tables of trioboss, and of your own: the others are copies of it."""
    with temporary_database(server_dsn) as dsn:
        with trioboss.SyncBoss(dsn), psycopg.connect(dsn) as conn:
            conn.execute("CREATE TABLE invoice (number int PRIMARY KEY, price int)")
        yield conninfo_to_dict(dsn)["dbname"]


@pytest.fixture
async def boss(server_dsn: str, template: str) -> AsyncIterator[trioboss.Boss]:
    """A boss on a database of its own, so that no test sees the jobs of another."""
    with temporary_database(server_dsn, template) as dsn:
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            yield boss
