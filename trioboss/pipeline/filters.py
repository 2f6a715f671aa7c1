"""Filters that Spark wants applied at the source, as SQL with exactly Spark's meaning.

What cannot be said exactly stays with Spark. Texts are compared by their bytes in both; a uuid equals its canonical
text and nothing else; null compares as in SQL.
"""

import math
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from trioboss.pipeline.tables import Column, Table

__all__ = ["bounds_of", "filter_to_sql", "literal"]

_ORDER: dict[type[Filter], str] = {
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_TEXTS = ("text", "state")


class _StaysWithSpark(Exception):
    """The filter has no exact equivalent."""


def literal(value: object) -> str:
    """A value in SQL. Safe whatever the text, and whatever the server thinks of backslashes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}::float8"
    if isinstance(value, datetime):
        # Spark hands over an instant as the wall clock of this process.
        return f"'{value.astimezone(UTC).isoformat()}'::timestamptz"
    if isinstance(value, str) and "\0" not in value:
        escaped = value.replace("\\", "\\\\").replace("'", "''")
        return f"E'{escaped}'" if "\\" in value else f"'{escaped}'"
    raise _StaysWithSpark


def filter_to_sql(asked: Filter, table: Table) -> str | None:
    """The filter as a condition in SQL, or None if Spark has to apply it."""
    try:
        return _condition(asked, table)
    except _StaysWithSpark:
        return None


def _condition(asked: Filter, table: Table) -> str:
    if isinstance(asked, Not):
        return f"NOT ({_condition(asked.child, table)})"
    column = _column(asked, table)
    if isinstance(asked, IsNull):
        return f"{column.quoted} IS NULL"
    if isinstance(asked, IsNotNull):
        return f"{column.quoted} IS NOT NULL"
    if isinstance(asked, EqualTo):
        return f"{_compared(column)} = {_value(column, asked.value)}"
    if isinstance(asked, EqualNullSafe):
        value = "NULL" if asked.value is None else _value(column, asked.value)
        return f"{_compared(column)} IS NOT DISTINCT FROM {value}"
    if isinstance(asked, In):
        values = [_value(column, value) for value in asked.value]
        if not values:
            raise _StaysWithSpark
        return f"{_compared(column)} IN ({', '.join(values)})"
    return _ordered(column, asked) or _textual(column, asked)


def _column(asked: Filter, table: Table) -> Column:
    attribute = getattr(asked, "attribute", ())
    for column in table.columns:
        if attribute == (column.name,):
            return column
    raise _StaysWithSpark


def _compared(column: Column) -> str:
    """The column as it is compared. An index is used where there is one."""
    if column.kind in ("json", "seconds", "utc"):
        raise _StaysWithSpark
    if column.kind == "text":
        return f'{column.quoted} COLLATE "C"'
    if column.kind == "state":
        return f'{column.quoted}::text COLLATE "C"'
    return column.quoted


def _value(column: Column, value: Any) -> str:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        raise _StaysWithSpark
    if column.kind == "uuid":
        # Spark compares texts: a uuid written in another way is never equal.
        try:
            canonical = str(UUID(value))
        except ValueError:
            raise _StaysWithSpark from None
        if canonical != value:
            raise _StaysWithSpark
        return f"'{canonical}'::uuid"
    if column.kind == "xid":
        return f"'{int(value)}'::xid8"
    return literal(value)


def _ordered(column: Column, asked: Filter) -> str | None:
    operator = _ORDER.get(type(asked))
    if operator is None:
        return None
    if column.kind == "uuid":
        raise _StaysWithSpark
    return f"{_compared(column)} {operator} {_value(column, asked.value)}"  # type: ignore[attr-defined]


def _textual(column: Column, asked: Filter) -> str:
    if column.kind not in _TEXTS or not isinstance(asked, StringStartsWith | StringEndsWith | StringContains):
        raise _StaysWithSpark
    text, value = _compared(column), literal(asked.value)
    if isinstance(asked, StringStartsWith):
        return f"starts_with({text}, {value})"
    if isinstance(asked, StringContains):
        return f"strpos({text}, {value}) > 0"
    return f"right({text}, length({value})) = {value}"


def bounds_of(asked: Filter, table: Table) -> tuple[datetime | None, datetime | None]:
    """The earliest and the latest instant of the table's time that the filter lets through."""
    if getattr(asked, "attribute", None) != (table.time,):
        return None, None
    value = getattr(asked, "value", None)
    if isinstance(asked, In):
        instants = [v.astimezone(UTC) for v in asked.value if isinstance(v, datetime)]
        return (min(instants), max(instants)) if len(instants) == len(asked.value) else (None, None)
    if not isinstance(value, datetime):
        return None, None
    instant = value.astimezone(UTC)
    if isinstance(asked, EqualTo | EqualNullSafe):
        return instant, instant
    if isinstance(asked, GreaterThan | GreaterThanOrEqual):
        return instant, None
    if isinstance(asked, LessThan | LessThanOrEqual):
        return None, instant
    return None, None
