"""Fixtures: one database for all tests of this folder, emptied after each, and a clock for its SQL."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import psycopg
import pytest
from psycopg import sql
from store_helpers import open_quiet_boss

import trioboss
from trioboss.api import base
from trioboss.postgres.operation import Operation
from trioboss.testing import temporary_database

TABLES = (
    *("queue", "live_job", "archive", "attempt", "backlog_check", "throttle", "staging"),
    *("idle_dispatcher", "completion_waiter", "worker", "subscription", "schedule", "tick"),
    *("queue_sample", "warning", "audit"),
)


@pytest.fixture(scope="session")
def store_database(server_dsn: str, template: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the database of this folder, to read its tables and to empty it."""
    with temporary_database(server_dsn, template) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def dsn(store_database: psycopg.Connection[Any]) -> Iterator[str]:
    """The dsn of a migrated database without queues. Making one for each test would take longer than the test."""
    yield store_database.info.dsn
    empty(store_database)


def empty(database: psycopg.Connection[Any]) -> None:
    """Remove everything that a test left: sessions, rows, tables of queues."""
    database.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
    )
    own_tables = database.execute(
        "select relname from pg_class where relkind = 'r' and relname ~ '^j[0-9a-f]{32}$'"
    )
    for (table,) in own_tables.fetchall():
        database.execute(sql.SQL("drop table trioboss.{}").format(sql.Identifier(table)))
    with database.pipeline():
        for table in TABLES:
            database.execute(sql.SQL("delete from trioboss.{}").format(sql.Identifier(table)))


@pytest.fixture
async def boss(dsn: str) -> AsyncIterator[trioboss.Boss]:
    """A boss without maintenance and cron: jobs change only by what the test does."""
    async with open_quiet_boss(dsn) as boss:
        yield boss


@pytest.fixture
def database(store_database: psycopg.Connection[Any], dsn: str) -> psycopg.Connection[Any]:
    """A connection to the test's database, in autocommit, for plain SQL."""
    return store_database


@attrs.define
class Clock:
    """The time that the statements of a boss use instead of the database's clock."""

    _boss: trioboss.Boss
    now: datetime = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def __attrs_post_init__(self) -> None:
        self._boss._store.context.now = self.now

    def advance(self, seconds: float) -> datetime:
        """Move the clock on by so many seconds."""
        self.now += timedelta(seconds=seconds)
        self._boss._store.context.now = self.now
        return self.now


@pytest.fixture
def clock(boss: trioboss.Boss) -> Clock:
    """A clock that shows noon on the first of January 2030, until it is advanced."""
    return Clock(boss)


@pytest.fixture
async def offline_boss(boss: trioboss.Boss) -> AsyncIterator[trioboss.Boss]:
    """A boss for calls that have to be refused before any SQL."""

    async def execute(operation: Operation[Any], *_: object) -> None:
        next(operation)
        pytest.fail("a statement was executed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "execute", execute)
        yield boss


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss
