"""Python values in the server's text format, as parameters of statements."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from trioboss.model.job import Lease
from trioboss.postgres import BoundStatement
from trioboss.sql import Statement

__all__ = ["bind", "lease_arrays", "text_array", "uuid_array"]


def bind(statement: Statement, values: Mapping[str, object]) -> BoundStatement:
    """A statement with its parameters; a parameter that is not among the values is null."""
    get = values.get
    return BoundStatement(
        statement, [None if (v := get(name)) is None else _text(v) for name in statement.parameters]
    )


def _text(value: Any) -> bytes:
    # All parameters are text: their types are in the casts of the statements.
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


def lease_arrays(leases: Iterable[Lease], unfenced: Iterable[UUID] = ()) -> dict[str, str]:
    """The parameters that fence a statement: leases as three arrays, and ids that stand for whatever is active."""
    ids: list[str] = []
    attempts: list[str] = []
    starts: list[str] = []
    times: dict[datetime, str] = {}  # the jobs of one claim have started at the same time
    for lease in leases:
        ids.append(str(lease.id))
        attempts.append(str(lease.attempt))
        started_on = lease.started_on
        starts.append(times.get(started_on) or times.setdefault(started_on, f'"{started_on.isoformat()}"'))
    values = {"attempts": "{" + ",".join(attempts) + "}", "starts": "{" + ",".join(starts) + "}"}
    if any_active := [str(id) for id in unfenced]:
        # In both arrays: `ids` finds the rows, `unfenced` lets them pass the fence.
        ids += any_active
        values["unfenced"] = "{" + ",".join(any_active) + "}"
    return values | {"ids": "{" + ",".join(ids) + "}"}
