"""The rights of producers, workers, readers and the admin, as SQL that also works in psql."""

from collections.abc import Mapping
from importlib import resources

from trioboss.sql import qualify

__all__ = ["ROLES", "grant_plans", "grant_text"]

ROLES = ("admin", "producer", "worker", "reader")
"""What roles there are; ownership changes hands first."""

_LONGEST = 63  # bytes of a name that Postgres keeps: it would cut a longer one, and mean another role


def grant_text(schema: str, roles: Mapping[str, str]) -> str:
    """SQL that gives database roles their rights: ``roles`` says which role is the producer, the worker, ….

    Needs a transaction around it, of a superuser or the owner of the schema. It may be run again, and has to be
    after a migration.
    """
    if unknown := roles.keys() - set(ROLES):
        raise ValueError(f"roles: {min(unknown)!r} is not one of {', '.join(ROLES)}")
    steps = [_rights(kind, schema).replace(':"role"', _quote(roles[kind])) for kind in ROLES if kind in roles]
    return "\n".join(["SET LOCAL search_path = pg_catalog, pg_temp;", *steps, _rights("existing", schema)])


def grant_plans(schema: str, roles: Mapping[str, str]) -> str:
    """The same, with its transaction."""
    return f"BEGIN;\n{grant_text(schema, roles)}\nCOMMIT;\n"


def _rights(name: str, schema: str) -> str:
    return qualify(resources.files(__package__).joinpath("rights", f"{name}.sql").read_text("utf-8"), schema)


def _quote(role: str) -> str:
    """The role as an identifier that nothing can break out of."""
    try:
        length = len(role.encode())
    except UnicodeEncodeError:
        length = 0
    if not 0 < length <= _LONGEST or "\0" in role:
        raise ValueError(f"role: {role!r} is not the name of a role: 1 to {_LONGEST} bytes")
    if role == "public":  # also in quotes Postgres takes it for everybody
        raise ValueError("role: 'public' is not the name of a role: it means everybody")
    return '"' + role.replace('"', '""') + '"'
