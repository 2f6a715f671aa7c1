"""Python values as Postgres reads them in a statement's parameters."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from trioboss.postgres import Step
from trioboss.sql import Statement

__all__ = ["fence", "step", "text_array", "uuid_array"]


def step(statement: Statement, values: Mapping[str, object]) -> Step:
    """A statement with its parameters; those that are not among the values are null."""
    get = values.get
    return Step(statement, [None if (v := get(name)) is None else _text(v) for name in statement.parameters])


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


def text_array(values: Iterable[str]) -> str:
    """An array of strings, as text."""
    return "{" + ",".join(json.dumps(v, ensure_ascii=False) for v in values) + "}"


def fence(entries: Iterable[tuple[UUID, int | None, datetime | None, str]]) -> str:
    """The JSON that fences a statement: id → [attempt, started_on, …], where … is JSON text already."""
    return (
        "{"
        + ",".join(f'"{id}":[{_lease(attempt, started)},{rest}]' for id, attempt, started, rest in entries)
        + "}"
    )


def _lease(attempt: int | None, started_on: datetime | None) -> str:
    return "null,null" if started_on is None else f'{attempt},"{started_on.isoformat()}"'
