from collections.abc import AsyncIterator, Iterator

import pytest

import trioboss
from trioboss.testing import temporary_database, temporary_server


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """One server for the whole run. It is not durable, which makes it fast."""
    with temporary_server() as server:
        yield server.dsn


@pytest.fixture
async def boss(server_dsn: str) -> AsyncIterator[trioboss.Boss]:
    """A boss on a new database for each test, so that no test sees the jobs of another."""
    with temporary_database(server_dsn) as dsn:
        async with trioboss.open_boss(dsn) as boss:
            yield boss
