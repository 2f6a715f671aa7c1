"""What can be read: the tables, and how each of their columns comes to Spark."""

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

_TYPES: dict[str, DataType] = {
    "text": StringType(),
    "uuid": StringType(),
    "json": StringType(),
    "state": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "xid": LongType(),
    "float": DoubleType(),
    "seconds": DoubleType(),
    "boolean": BooleanType(),
    "instant": TimestampType(),
    "utc": TimestampType(),
}

# What Spark has no type for, the server turns into one that it has. A state is sent as text anyway, and the number of a
# transaction as a number.
_EXPRESSIONS = {
    "uuid": "{}::text",
    "json": "{}::text",
    "seconds": "date_part('epoch', {})",
    "utc": "{} AT TIME ZONE 'UTC'",
}


@attrs.frozen
class Column:
    """A column: what it is called here and in the database, and of which kind it is."""

    name: str
    kind: str
    source: str

    @property
    def type(self) -> DataType:
        """Its type in Spark."""
        return _TYPES[self.kind]

    @property
    def quoted(self) -> str:
        """Its name in SQL."""
        return f'"{self.source}"'

    @property
    def expression(self) -> str:
        """Its value in SQL, as Spark takes it."""
        return _EXPRESSIONS.get(self.kind, "{}").format(self.quoted)

    @property
    def selected(self) -> str:
        """The expression under the column's name."""
        return f'{self.expression} AS "{self.name}"'


@attrs.frozen
class Table:
    """A table: its columns, and for history the column that says to which day a row belongs."""

    name: str
    columns: tuple[Column, ...]
    time: str | None = None

    @property
    def is_history(self) -> bool:
        """Append only, and every row says which transaction wrote it."""
        return self.time is not None

    def get(self, name: str) -> Column:
        """The column of that name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UsageError(f"columns: {self.name} has no column {name!r}")

    def schema(self, names: Sequence[str] | None = None) -> StructType:
        """The table, or these columns of it, as Spark describes it."""
        chosen = self.columns if names is None else [self.get(name) for name in names]
        return StructType([StructField(column.name, column.type) for column in chosen])


def _columns(**groups: str) -> dict[str, str]:
    return {name: kind for kind, names in groups.items() for name in names.split()}


def _make(order: str, kinds: dict[str, str]) -> tuple[Column, ...]:
    renamed = {"queue": "name", "source_queue": "source_name"}
    return tuple(Column(name, kinds[name], renamed.get(name, name)) for name in order.split())


_JOB = _make(
    "id queue state priority data singleton_key policy created_on start_after started_on completed_on attempt worker "
    "output progress dead_letter retry_count retry_limit retry_delay retry_backoff retry_delay_max retry_jitter "
    "retry_window backoff_count failed_on expire_in heartbeat heartbeat_on auto_heartbeat max_lease_extensions "
    "lease_extensions keep_until delete_after unique_until singleton_on source_queue source_id source_created_on "
    "source_retry_count seq",
    _columns(
        uuid="id worker source_id",
        text="queue singleton_key policy dead_letter unique_until source_queue",
        state="state",
        json="data output progress",
        int="priority retry_limit retry_count backoff_count max_lease_extensions lease_extensions source_retry_count "
        "attempt",
        bigint="seq",
        float="retry_delay retry_delay_max retry_jitter",
        seconds="retry_window expire_in heartbeat delete_after",
        boolean="retry_backoff auto_heartbeat",
        instant="failed_on start_after started_on heartbeat_on created_on completed_on keep_until source_created_on",
        utc="singleton_on",
    ),
)
_ATTEMPT = _make(
    "job_id queue attempt worker started_on ended_on outcome error singleton_key",
    _columns(
        uuid="job_id worker",
        text="queue outcome singleton_key",
        int="attempt",
        instant="started_on ended_on",
        json="error",
    ),
)
_QUEUE = _make(
    "queue policy paused dead_letter retry_limit commit_order keep_completed created_on",
    _columns(
        text="queue policy dead_letter",
        boolean="paused commit_order keep_completed",
        int="retry_limit",
        instant="created_on",
    ),
)
_LOAD = _make(
    "id queue state staged released rejected ended_on",
    _columns(text="id queue state", bigint="staged released rejected", instant="ended_on"),
)
_REJECTED = _make("load position problem job", _columns(text="load problem", bigint="position", json="job"))
_XID = (Column("xid", "xid", "xid"),)

TABLES = {
    table.name: table
    for table in (
        Table("archive", _JOB + _XID, time="completed_on"),
        Table("attempt", _ATTEMPT + _XID, time="ended_on"),
        Table("job", _JOB),
        Table("queue", _QUEUE),
        Table("load", _LOAD),
        Table("rejected", _REJECTED),
    )
}


def find_table(name: str) -> Table:
    """The table of that name."""
    if name not in TABLES:
        raise UsageError(f"table: {name!r} is none of {', '.join(TABLES)}")
    return TABLES[name]
