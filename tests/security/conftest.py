"""Roles of the server, and databases in which `trioboss grants` gave them their rights."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from security_helpers import ROLES, granted_database, role

import trioboss
from trioboss.testing import temporary_database


@pytest.fixture(scope="session")
def roles(server_dsn: str) -> Iterator[None]:
    """Roles that may log in and nothing else."""
    names = [sql.Identifier(role(kind)) for kind in ROLES]
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        for name in names:
            owner.execute(sql.SQL("create role {} login").format(name))
        yield
        for name in names:
            owner.execute(sql.SQL("drop role {}").format(name))


@pytest.fixture
def granted_dsn(server_dsn: str, template: str, roles: None) -> Iterator[str]:
    """The dsn, for a superuser, of a database of its own with all rights given."""
    with granted_database(server_dsn, template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def shown_dsn(server_dsn: str, template: str, roles: None) -> Iterator[str]:
    """The same, for tests that change nothing."""
    with granted_database(server_dsn, template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def quarry(server_dsn: str, template: str) -> Iterator[trioboss.SyncBoss]:
    """A boss that many tests and examples share; its queue is q."""
    with temporary_database(server_dsn, template) as dsn, trioboss.SyncBoss(dsn, migrate=False) as boss:
        boss.create_queue("q", policy="key_strict_fifo")
        yield boss
