"""The rights of producers, workers, readers and the admin, as SQL that also works in psql."""

import re
from collections.abc import Iterator, Mapping
from importlib import resources

import attrs

from trioboss.sql import qualify

__all__ = ["ROLES", "Right", "grant_plans", "grant_text", "needed_rights"]

ROLES = ("admin", "producer", "worker", "reader")
"""The kinds of roles; the ownership changes hands first."""

_LONGEST = 63  # bytes of a name that Postgres keeps: it would cut a longer one, and mean another role


def grant_text(schema: str, roles: Mapping[str, str]) -> str:
    """SQL that gives database roles their rights: ``roles`` says which role is the producer, the worker, ….

    Needs a transaction around it, of a superuser or the owner of the schema; an owner that is no superuser becomes a
    member of the admin, which it has to have created. It may be run again, and has to be after a migration.
    """
    if unknown := roles.keys() - set(ROLES):
        raise ValueError(f"roles: {min(unknown)!r} is not one of {', '.join(ROLES)}")
    steps = [_rights(kind, schema).replace(':"role"', _quote(roles[kind])) for kind in ROLES if kind in roles]
    return "\n".join(["SET LOCAL search_path = pg_catalog, pg_temp;", *steps, _rights("existing", schema)])


def grant_plans(schema: str, roles: Mapping[str, str]) -> str:
    """The same, with its transaction."""
    return f"BEGIN;\n{grant_text(schema, roles)}\nCOMMIT;\n"


@attrs.frozen
class Right:
    """One right on one object, as `has_table_privilege` and its like take it."""

    kind: str
    """schema, table, sequence or function."""
    name: str
    column: str
    """Empty: on the whole object."""
    right: str


_GRANT = re.compile(
    r"^GRANT (.+?) ON\s+(?:(SCHEMA|SEQUENCE|FUNCTION)\s+)?(.+?)\s+TO :\"role\";", re.MULTILINE | re.DOTALL
)
_COMMA = re.compile(r",\s*(?![^()]*\))")  # not within parentheses


def needed_rights(schema: str, kind: str) -> list[Right]:
    """The rights that a producer, a worker or a reader needs: those that `grant_text` gives it."""
    text = re.sub(r"--[^\n]*", "", _rights(kind, schema))
    return [right for match in _GRANT.finditer(text) for right in _read_grant(*match.groups())]


def _read_grant(rights: str, kind: str | None, objects: str) -> Iterator[Right]:
    for name in _COMMA.split(objects):
        for right in _COMMA.split(rights):
            privilege, _, columns = right.partition("(")
            for column in columns.rstrip(") \n").split(",") if columns else [""]:
                plain = name.strip().strip('"') if kind == "SCHEMA" else name.strip()
                yield Right((kind or "table").lower(), plain, column.strip(), privilege.strip())


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
