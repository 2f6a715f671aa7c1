"""Who is who."""

from psycopg.conninfo import make_conninfo

ROLES = ("producer", "worker", "reader", "admin")


def role(kind: str) -> str:
    """The role of the server: a name that breaks whatever does not quote."""
    return f'sec {kind}"; drop table x --'


def as_role(dsn: str, kind: str) -> str:
    """The same database for one of the roles."""
    return make_conninfo(dsn, user=role(kind))
