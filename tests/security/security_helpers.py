"""Who is who."""

import contextlib
import io
from collections.abc import Iterator

from psycopg.conninfo import make_conninfo

from trioboss.cli import main
from trioboss.testing import temporary_database

ROLES = ("producer", "worker", "reader", "admin")


def role(kind: str) -> str:
    """The role of the server: a name that breaks whatever does not quote."""
    return f'sec {kind}"; drop table x --'


def as_role(dsn: str, kind: str) -> str:
    """The same database for one of the roles."""
    return make_conninfo(dsn, user=role(kind))


@contextlib.contextmanager
def granted_database(server_dsn: str, template: str) -> Iterator[str]:
    """A migrated database in which all roles have their rights."""
    with temporary_database(server_dsn, template) as dsn:
        options = [text for kind in ROLES for text in (f"--{kind}", role(kind))]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert main(["grants", "--dsn", dsn, "--apply", *options]) == 0
        yield dsn
