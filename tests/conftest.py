"""Fixtures: one throw-away server for the whole run, and a database of its own for every test that asks for one."""

import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import settings

import trioboss
from trioboss.postgres.databases import create_database, replace_database
from trioboss.testing import temporary_database, temporary_server

TEMPLATE = "migrated"

# The normal run tries the same examples every time; `--hypothesis-profile=deep` looks for new ones, and longer.
# A deadline would measure the machine.
settings.register_profile("quick", deadline=None, derandomize=True)
settings.register_profile("deep", deadline=None, max_examples=3000, print_blob=True)
settings.load_profile("quick")


@pytest.hookimpl(optionalhook=True)  # not every run has xdist: tests/mutants/apply.py has none
def pytest_xdist_auto_num_workers() -> int:
    """How many processes `-n auto` means: more than cores, because many tests wait for a process or a restart."""
    return max(3, (os.cpu_count() or 2) * 3 // 2)


@pytest.fixture(scope="session", autouse=True)
def obedience() -> None:
    """Handle all signals: a process in the background ignores some, and so would those that it starts."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """The dsn of a server that is there for the whole run. Not durable: the tests of that start their own."""
    with temporary_server(max_connections=200) as server:
        yield server.dsn


@pytest.fixture(scope="session")
def template(server_dsn: str) -> str:
    """The name of a database that is migrated and never used: the others are copies of it."""
    create_database(server_dsn, TEMPLATE)
    with trioboss.SyncBoss(replace_database(server_dsn, TEMPLATE)):
        pass
    return TEMPLATE


@pytest.fixture
def empty_dsn(server_dsn: str) -> Iterator[str]:
    """The dsn of an empty database."""
    with temporary_database(server_dsn) as dsn:
        yield dsn


@pytest.fixture
def dsn(server_dsn: str, template: str) -> Iterator[str]:
    """The dsn of a migrated database without queues."""
    with temporary_database(server_dsn, template) as dsn:
        yield dsn


@pytest.fixture
async def boss(dsn: str) -> AsyncIterator[trioboss.Boss]:
    """A boss on a database of its own."""
    async with trioboss.open_boss(dsn, migrate=False) as boss:
        yield boss


@pytest.fixture
def sync_boss(dsn: str) -> Iterator[trioboss.SyncBoss]:
    """A blocking boss on a database of its own."""
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        yield boss
