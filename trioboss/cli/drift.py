"""Finds where a schema differs from what the migrations make, with the statements that repair it.

The migrations are applied to a schema that exists only within a transaction, which is rolled back: so the comparison is
exact on every version of Postgres.
"""

import os
from collections.abc import Iterator, Mapping

import attrs

from trioboss.api.sync import SyncBoss
from trioboss.postgres.blocking import BlockingConnection
from trioboss.sql import Catalog, qualify
from trioboss.sql.grants import grant_text
from trioboss.sql.parts import making_statement
from trioboss.sql.plans import migrations

__all__ = ["Drift", "find_drift"]

_PUBLIC = "PUBLIC"
_SIMILAR = 0.5  # the share of rights from which on a role is taken for one of a kind
Objects = Mapping[tuple[str, str | None, str], str]
Right = tuple[str, str, str | None, str]


@attrs.frozen
class Drift:
    """One difference, and what to do about it."""

    text: str
    repair: str


def find_drift(boss: SyncBoss) -> list[Drift]:
    """All differences. Needs the right to create a schema; nothing is changed."""
    scratch = f"trioboss_doctor_{os.getpid()}"
    with boss.unchecked_transaction() as conn, conn.transaction(force_rollback=True):
        _execute(conn, f"SET LOCAL lock_timeout = '5s';\nCREATE SCHEMA \"{scratch}\";")
        for migration in migrations():
            _execute(conn, migration.apply_text(scratch))
        made, found = _describe(conn, scratch), _describe(conn, boss.schema)
        rights = _read_rights(conn, boss.schema)
        drift = list(_compare(made, found, boss.schema))
        drift += _find_public(rights, _read_rights(conn, scratch), boss.schema)
        for role in sorted(rights.keys() - {_PUBLIC}):
            drift += _find_missing_rights(conn, scratch, role, rights[role])
    return drift


def _execute(conn: BlockingConnection, text: str) -> None:
    conn.execute(text.encode())


def _describe(conn: BlockingConnection, schema: str) -> Objects:
    """The definitions of all objects, by kind, table and name, without the name of the schema."""
    _execute(conn, f'SET LOCAL search_path = "{schema}", pg_catalog')
    rows = conn.execute(Catalog(schema).get("describe_schema").text.encode()).fetchall()
    return {(kind, of, _neutral(name, schema)): _neutral(text or "", schema) for kind, of, name, text in rows}


def _neutral(text: str, schema: str) -> str:
    for mention in (f'"{schema}".', f"{schema}."):
        text = text.replace(mention, "trioboss.")
    return text.replace(f"'{schema}'", "'trioboss'")


def _compare(made: Objects, found: Objects, schema: str) -> Iterator[Drift]:
    missing_tables = {name for kind, _, name in made.keys() - found.keys() if kind == "table"}
    for (kind, of, name), definition in made.items():
        if of in missing_tables:
            continue  # the statement that makes the table makes them, too, or they follow it
        where = f"{kind} {name}" if of is None else f"{kind} {name} of {of}"
        if (kind, of, name) not in found:
            yield Drift(f"{where} is missing", _make(kind, of, name, definition, schema))
        elif found[kind, of, name] != definition:
            yield Drift(f"{where} was changed", _change(kind, of, name, definition, schema))
    ours = {name for kind, _, name in made if kind == "table"}
    for kind, of, name in found.keys() - made.keys():
        if kind == "trigger" and of in ours:
            text = f"trigger {name} of {of} is not one of trioboss: it runs in every statement"
            yield Drift(text, qualify(f'DROP TRIGGER "{name}" ON trioboss."{of}";', schema))


def _make(kind: str, of: str | None, name: str, definition: str, schema: str) -> str:
    if kind == "column":
        return qualify(f"ALTER TABLE trioboss.{of} ADD COLUMN {name} {definition};", schema)
    if kind == "constraint":
        return qualify(f"ALTER TABLE trioboss.{of} ADD CONSTRAINT {name} {definition};", schema)
    made = making_statement(kind, name.partition("(")[0], schema)
    return made or f"-- trioboss migrate cannot repair this: install into a new schema ({kind} {name})"


def _change(kind: str, of: str | None, name: str, definition: str, schema: str) -> str:
    if kind == "column":
        return _change_column(str(of), name, definition, schema)
    again = _make(kind, of, name, definition, schema)
    if kind in ("function", "view"):
        return again.replace(f"CREATE {kind.upper()}", f"CREATE OR REPLACE {kind.upper()}", 1)
    if kind == "constraint":
        return qualify(f"ALTER TABLE trioboss.{of} DROP CONSTRAINT {name};\n", schema) + again
    if kind in ("index", "trigger"):
        place = f"trioboss.{name}" if kind == "index" else f"{name} ON trioboss.{of}"
        return qualify(f"DROP {kind.upper()} {place};\n", schema) + again
    return f"-- compare with this, and change what differs:\n{again}"


def _change_column(table: str, name: str, definition: str, schema: str) -> str:
    text, _, default = definition.partition(" DEFAULT ")
    kind, not_null, _ = text.partition(" NOT NULL")
    changes = [
        f"ALTER COLUMN {name} DROP DEFAULT",
        f"ALTER COLUMN {name} TYPE {kind}",
        f"ALTER COLUMN {name} {'SET' if not_null else 'DROP'} NOT NULL",
    ]
    if default:
        changes.append(f"ALTER COLUMN {name} SET DEFAULT {default}")
    return qualify(f"ALTER TABLE trioboss.{table} {', '.join(changes)};", schema)


# -- rights


def _read_rights(conn: BlockingConnection, schema: str) -> dict[str, set[Right]]:
    _execute(conn, f'SET LOCAL search_path = "{schema}", pg_catalog')
    rights: dict[str, set[Right]] = {}
    for role, kind, name, column, right in conn.execute(
        Catalog(schema).get("describe_rights").text.encode()
    ).fetchall():
        rights.setdefault(role, set()).add((kind, _neutral(name, schema), column, right))
    return rights


def _find_public(
    found: Mapping[str, set[Right]], made: Mapping[str, set[Right]], schema: str
) -> Iterator[Drift]:
    extra = found.get(_PUBLIC, set()) - made.get(_PUBLIC, set())
    for kind, name, column, right in sorted(extra, key=str):
        place = (
            f'SCHEMA "{schema}"' if kind == "schema" else qualify(f"{kind.upper()} trioboss.{name}", schema)
        )
        what = right if column is None else f"{right} ({column})"
        yield Drift(
            f"everybody has {what} on {kind} {name}".rstrip(), f"REVOKE {what} ON {place} FROM PUBLIC;"
        )


def _find_missing_rights(
    conn: BlockingConnection, scratch: str, role: str, has: set[Right]
) -> Iterator[Drift]:
    """Rights that a role lacks of the kind that it is: the kind whose rights are most like its own."""
    best, needed = "", set[Right]()
    similarity = _SIMILAR
    for kind in ("producer", "worker", "reader"):
        with conn.transaction(force_rollback=True):
            _execute(conn, grant_text(scratch, {kind: role}))
            wanted = _read_rights(conn, scratch).get(role, set())
        score = len(wanted & has) / len(wanted | has)
        if score >= similarity:
            best, needed, similarity = kind, wanted, score
    whole = {(kind, name, right) for kind, name, column, right in has if column is None}
    missing = [each for each in needed - has if (each[0], each[1], each[3]) not in whole or each[2] is None]
    if missing:
        names = sorted({f"{right} on {name or 'the schema'}" for _, name, _, right in missing})
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield Drift(f"role {role!r}, a {best}, lacks {shown}", f"trioboss grants --{best} {role!r} --apply")
