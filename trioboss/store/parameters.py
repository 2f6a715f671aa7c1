"""Python values as Postgres reads them in a statement's parameters."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from trioboss.postgres import BoundStatement
from trioboss.sql import Statement

__all__ = ["fence", "step", "text_array", "uuid_array"]


def step(statement: Statement, values: Mapping[str, object]) -> BoundStatement:
    """A statement with its parameters; those that are not among the values are null."""
    get = values.get
    return BoundStatement(
        statement, [None if (v := get(name)) is None else _text(v) for name in statement.parameters]
    )


def _text(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, datetime):
        return value.isoformat().encode()
    return str(value).encode()


def uuid_array(ids: Iterable[UUID]) -> str:
    """An array of ids, as text."""
    return "{" + ",".join(map(str, ids)) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """An array of strings, as text."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def fence(entries: Iterable[tuple[UUID, int | None, datetime | None, str]]) -> dict[str, str]:
    """The parameters that fence a statement: the ids, and id → [attempt, started_on, …] as JSON.

    The last item of an entry is the … as JSON text already.
    """
    ids: list[str] = []
    leases: list[str] = []
    times: dict[datetime, str] = {}  # the jobs of one claim have started at the same time
    for id, attempt, started_on, rest in entries:
        ids.append(text := str(id))
        if started_on is None:
            leases.append(f'"{text}":[null,null,{rest}]')
            continue
        time = times.get(started_on) or times.setdefault(started_on, started_on.isoformat())
        leases.append(f'"{text}":[{attempt},"{time}",{rest}]')
    return {"ids": "{" + ",".join(ids) + "}", "leases": "{" + ",".join(leases) + "}"}
