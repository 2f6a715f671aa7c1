"""Finds rights that a schema gives and should not, or lacks."""

from collections.abc import Iterator, Mapping

from trioboss.postgres.blocking import BlockingConnection
from trioboss.sql import Catalog, qualify, unqualify
from trioboss.sql.grants import grant_text

__all__ = ["find_missing_rights", "find_public", "read_rights"]

_PUBLIC = "PUBLIC"
_SIMILAR = 0.5  # the share of rights from which on a role is taken for one of a kind
Right = tuple[str, str, str | None, str]


def read_rights(conn: BlockingConnection, schema: str) -> dict[str, set[Right]]:
    """The rights in a schema that others than the owner have: kind, object, column, right, by role.

    With an empty search_path, as for `qualify`: an object is named as in the schema trioboss.
    """
    rights: dict[str, set[Right]] = {}
    for role, kind, name, column, right in conn.execute(
        Catalog(schema).get("describe_rights").text.encode()
    ).fetchall():
        rights.setdefault(role, set()).add((kind, unqualify(name, schema), column, right))
    return rights


def find_public(
    found: Mapping[str, set[Right]], made: Mapping[str, set[Right]], schema: str
) -> Iterator[tuple[str, str]]:
    """Rights that everybody has and should not, each with the statement that takes it away."""
    extra = found.get(_PUBLIC, set()) - made.get(_PUBLIC, set())
    for kind, name, column, right in sorted(extra, key=str):
        place = (
            f'SCHEMA "{schema}"' if kind == "schema" else qualify(f"{kind.upper()} trioboss.{name}", schema)
        )
        what = right if column is None else f"{right} ({column})"
        yield f"everybody has {what} on {kind} {name}".rstrip(), f"REVOKE {what} ON {place} FROM PUBLIC;"


def find_missing_rights(
    conn: BlockingConnection, scratch: str, rights: Mapping[str, set[Right]]
) -> Iterator[tuple[str, str]]:
    """Rights that roles lack of the kind that they are, with the command that grants them.

    The kind of a role is the one whose rights are most like its own.
    """
    for role in sorted(rights.keys() - {_PUBLIC}):
        has = rights[role]
        kind, needed = _find_kind(conn, scratch, role, has)
        whole = {(each, name, right) for each, name, column, right in has if column is None}
        missing = [
            each for each in needed - has if (each[0], each[1], each[3]) not in whole or each[2] is None
        ]
        if missing:
            names = sorted({f"{right} on {name or 'the schema'}" for _, name, _, right in missing})
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            yield f"role {role!r}, a {kind}, lacks {shown}", f"trioboss grants --{kind} {role!r} --apply"


def _find_kind(conn: BlockingConnection, scratch: str, role: str, has: set[Right]) -> tuple[str, set[Right]]:
    best, needed = "", set[Right]()
    similarity = _SIMILAR
    for kind in ("producer", "worker", "reader"):
        with conn.transaction(force_rollback=True):
            conn.execute(grant_text(scratch, {kind: role}).encode())
            conn.execute(b"SET LOCAL search_path = ''")
            wanted = read_rights(conn, scratch).get(role, set())
        score = len(wanted & has) / len(wanted | has)
        if score >= similarity:
            best, needed, similarity = kind, wanted, score
    return best, needed
