"""Fixtures: one database and one blocking boss for all rows, and one run of workers that many rows check."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
from conformance_run import Seen, observe

import trioboss
from trioboss.testing import temporary_database

NUMBERS = count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the rows in one process: they share what the fixtures make."""
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("conformance"))


@pytest.fixture
def row(request: pytest.FixtureRequest) -> str:
    """The row that a test is about: its seed and its line."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_dsn(server_dsn: str, template: str) -> Iterator[str]:
    """The database of all rows."""
    with temporary_database(server_dsn, template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def shared_boss(shared_dsn: str) -> Iterator[trioboss.SyncBoss]:
    """The boss of all rows that need no worker."""
    with trioboss.SyncBoss(shared_dsn, migrate=False) as boss:
        yield boss


@pytest.fixture
def b(shared_boss: trioboss.SyncBoss) -> Iterator[trioboss.SyncBoss]:
    """The shared boss, by the clock of the database."""
    yield shared_boss
    shared_boss._store.context.now = None


@pytest.fixture
def advance(b: trioboss.SyncBoss) -> Callable[[float], None]:
    """Moves the time of the statements of the boss; it stands still otherwise."""
    context = b._store.context
    context.now = datetime(2030, 1, 1, 12, tzinfo=UTC)

    def move(seconds: float) -> None:
        assert context.now is not None
        context.now += timedelta(seconds=seconds)

    return move


@pytest.fixture
def make(b: trioboss.SyncBoss) -> Callable[..., str]:
    """Makes a queue of its own for a row; returns its name."""

    def make_queue(**options: Any) -> str:
        name = f"q{next(NUMBERS)}"
        b.create_queue(name, **options)
        return name

    return make_queue


@pytest.fixture(scope="session")
def shared_sql(shared_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection for plain SQL."""
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def sql(shared_sql: psycopg.Connection[Any]) -> Callable[..., list[tuple[Any, ...]]]:
    """Executes plain SQL and returns its rows."""

    def execute(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        cursor = shared_sql.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []

    return execute


@pytest.fixture(scope="session")
def seen(server_dsn: str, template: str) -> Iterator[Seen]:
    """The record of one run of workers, on a database of its own."""
    with temporary_database(server_dsn, template) as dsn:
        yield trio.run(observe, dsn)
