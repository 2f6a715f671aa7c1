"""Roles of the server, and databases in which `trioboss grants` gave them their rights."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from security_helpers import ROLES, role

from trioboss.cli import main
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
def granted_dsn(
    server_dsn: str, template: str, roles: None, capsys: pytest.CaptureFixture[str]
) -> Iterator[str]:
    """The dsn, for a superuser, of a migrated database in which all roles have their rights."""
    with temporary_database(server_dsn, template) as dsn:
        options = [text for kind in ROLES for text in (f"--{kind}", role(kind))]
        assert main(["grants", "--dsn", dsn, "--apply", *options]) == 0
        capsys.readouterr()
        yield dsn
