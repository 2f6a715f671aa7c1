"""The tables that Spark can read: each column's name, its value in SQL and its type in Spark.

Everything that depends on the columns of the database's tables is here. The other modules use the names that Spark
sees. In SQL, `t` is the row of the table.
"""

from collections.abc import Sequence

import attrs
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from trioboss.errors import UsageError

__all__ = ["TABLES", "Column", "Table", "find_table"]

# For each kind of column: its type in Spark, and how the server sends it. Spark has no type for some of Postgres's, so
# the server converts these. An enum is sent as text anyway, a transaction id as a number, and a uuid as the 16 bytes
# that `decoding` turns into text.
_KINDS: dict[str, tuple[DataType, str]] = {
    "text": (StringType(), "{}"),
    "enum": (StringType(), "{}"),
    "uuid": (StringType(), "{}"),
    "json": (StringType(), "{}::text"),
    "int": (IntegerType(), "{}"),
    "bigint": (LongType(), "{}"),
    "xid": (LongType(), "{}"),
    "float": (DoubleType(), "{}"),
    "interval": (DoubleType(), "date_part('epoch', {})"),
    "boolean": (BooleanType(), "{}"),
    "timestamptz": (TimestampType(), "{}"),
    "timestamp": (TimestampType(), "{} AT TIME ZONE 'UTC'"),
}


@attrs.frozen
class Column:
    """A column as Spark sees it, and its value in SQL."""

    name: str
    kind: str
    value: str

    @property
    def type(self) -> DataType:
        """The type in Spark."""
        return _KINDS[self.kind][0]

    @property
    def selected(self) -> str:
        """The column in a SELECT list."""
        return f'{_KINDS[self.kind][1].format(self.value)} AS "{self.name}"'


@attrs.frozen
class Table:
    """A table: its columns, and for history the column that decides to which day a row belongs."""

    name: str
    columns: tuple[Column, ...]
    time: str | None = None

    @property
    def is_history(self) -> bool:
        """Rows are appended, and each has the id of the transaction that wrote it."""
        return self.time is not None

    def find(self, name: str) -> Column | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)

    def get(self, name: str) -> Column:
        """The column of that name, or raise UsageError."""
        column = self.find(name)
        if column is None:
            raise UsageError(f"columns: {self.name} has no column {name!r}")
        return column

    def schema(self, names: Sequence[str] | None = None) -> StructType:
        """The table, or these columns of it, as Spark describes it."""
        chosen = self.columns if names is None else [self.get(name) for name in names]
        return StructType([StructField(column.name, column.type) for column in chosen])


def _columns(*rows: tuple[str, str] | tuple[str, str, str]) -> tuple[Column, ...]:
    """Columns from (name, kind) or, where the database has another name or none, (name, kind, value)."""
    return tuple(Column(row[0], row[1], row[2] if len(row) == 3 else f't."{row[0]}"') for row in rows)


# An option that a job does not override is null here: it was that of its queue. A failed job has the retry_limit and
# the dead letter queue that applied when it failed.
_JOB = _columns(
    ("id", "uuid"),
    ("queue", "text"),
    ("state", "enum", "t.outcome"),
    ("priority", "int"),
    ("data", "json"),
    ("singleton_key", "text", "t.key"),
    ("policy", "enum"),
    ("created_on", "timestamptz"),
    ("start_after", "timestamptz"),
    ("started_on", "timestamptz"),
    ("completed_on", "timestamptz"),
    ("attempt", "int"),
    ("worker", "uuid"),
    ("output", "json"),
    ("progress", "json", "(t.notes -> 'progress')"),
    ("retry_count", "int"),
    ("retry_limit", "int", "(coalesce(t.options ->> 'retry_limit', t.notes ->> 'retry_limit')::int)"),
    ("options", "json"),
    ("unique_until", "text", "(nullif(split_part(t.notes ->> 'unique_key', ':', 1), ''))"),
    ("dead_letter", "text", "(t.notes ->> 'dead_letter')"),
    ("source_queue", "text", "(t.notes #>> '{source,queue}')"),
    ("source_id", "text", "(t.notes #>> '{source,id}')"),
    ("source_created_on", "timestamptz", "((t.notes #>> '{source,created_on}')::timestamptz)"),
    ("source_retry_count", "int", "((t.notes #>> '{source,retry_count}')::int)"),
    ("redriven_from", "text", "(t.notes ->> 'redriven')"),
    ("seq", "bigint"),
)
# Live jobs, as the view job shows them.
_LIVE_JOB = _columns(
    ("id", "uuid"),
    ("queue", "text", "t.name"),
    ("state", "text"),
    ("readiness", "text"),
    ("priority", "int"),
    ("data", "json"),
    ("singleton_key", "text"),
    ("policy", "text"),
    ("created_on", "timestamptz"),
    ("start_after", "timestamptz"),
    ("started_on", "timestamptz"),
    ("attempt", "int"),
    ("worker", "uuid"),
    ("output", "json"),
    ("progress", "json"),
    ("retry_count", "int"),
    ("retry_limit", "int"),
    ("dead_letter", "text"),
    ("source_queue", "text", "t.source_name"),
    ("source_id", "uuid"),
    ("seq", "bigint"),
)
_ATTEMPT = _columns(
    ("job_id", "uuid"),
    ("queue", "text"),
    ("attempt", "int"),
    ("worker", "uuid"),
    ("started_on", "timestamptz"),
    ("ended_on", "timestamptz"),
    ("outcome", "text"),
    ("error", "json"),
    ("singleton_key", "text", "t.key"),
)
_QUEUE = _columns(
    ("queue", "text", "t.name"),
    ("policy", "text"),
    ("paused", "boolean"),
    ("dead_letter", "text"),
    ("retry_limit", "int"),
    ("commit_order", "boolean"),
    ("keep_completed", "boolean"),
    ("created_on", "timestamptz"),
)
_LOAD = _columns(
    ("id", "text"),
    ("queue", "text", "t.name"),
    ("state", "text"),
    ("staged", "bigint"),
    ("released", "bigint"),
    ("rejected", "bigint"),
    ("ended_on", "timestamptz"),
)
_REJECTED = _columns(("load", "text"), ("position", "bigint"), ("problem", "text"), ("job", "json"))
_XID = _columns(("xid", "xid"))

TABLES = {
    table.name: table
    for table in (
        Table("archive", _JOB + _XID, time="completed_on"),
        Table("attempt", _ATTEMPT + _XID, time="ended_on"),
        Table("job", _LIVE_JOB),
        Table("queue", _QUEUE),
        Table("load", _LOAD),
        Table("rejected", _REJECTED),
    )
}


def find_table(name: str) -> Table:
    """The table of that name, or raise UsageError."""
    if name not in TABLES:
        raise UsageError(f"table: {name!r} is none of {', '.join(TABLES)}")
    return TABLES[name]
