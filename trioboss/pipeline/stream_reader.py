"""The stream side of the source: new history, each row once.

An offset is a transaction id: the stream has read everything that transactions before it wrote. A batch ends at the
horizon, the oldest transaction that is still running (the snapshot's xmin). The rows that it and younger transactions
write come in a later batch, in whatever order they commit. Times and sequences cannot be offsets: a row with a low
number may become visible after a row with a higher number has been read.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from trioboss.errors import TriobossError, UsageError
from trioboss.pipeline.batch_reader import check_schema
from trioboss.pipeline.columns import find_table
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.history_reader import HistoryReader
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import read_horizon
from trioboss.pipeline.query import Query

__all__ = ["DataLost", "StreamReader"]

Offset = dict[str, int]


class DataLost(TriobossError):
    """Retention has deleted rows that a stream has not read."""

    def __init__(self, table: str, first: int, deleted: int) -> None:
        super().__init__(
            f"the stream is at transaction {first}, and retention has deleted rows of {table} up to transaction "
            f"{deleted}: to go on without them, set failOnDataLoss to false"
        )


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a history table."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        table = find_table(options.table)
        if not table.is_history:
            raise UsageError(
                f"table: {table.name!r} is not history: only archive and attempt can be followed"
            )
        for name, given in (("snapshot", options.snapshot), ("toXid", options.end_xid)):
            if given is not None:
                raise UsageError(f"{name}: a stream has no end")
        self._options = options
        self._table = table.name
        self._history = HistoryReader(options, Query.of(options, table, check_schema(table, schema)), schema)
        self._target: int | None = None

    # -- offsets, on the driver

    def initialOffset(self) -> Offset:
        """Where a stream without a checkpoint begins."""
        start = self._options.start
        if start == "latest":
            return {"xid": self._horizon()}
        return {"xid": 0 if start == "earliest" else int(start)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """How many rows a batch may have."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read everything that is sealed now, and nothing that comes later."""
        self._target = self._horizon()

    def reportLatestOffset(self) -> Offset:
        """The highest offset that the stream could have."""
        return {"xid": self._horizon()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends; where it starts if there is nothing new."""
        first = start["xid"]
        history = {"archive": self._table}
        with self._open() as database:
            sealed = read_horizon(database).sealed
            if sealed < first:
                raise UsageError(
                    f"the stream is at transaction {first}, the database at {sealed}: it was restored from a dump, "
                    "or is another one; begin with a new checkpoint"
                )
            self._check_deleted(database, first)
            sealed = sealed if self._target is None else min(sealed, self._target)
            found = database.run("find_new", of=history, first=first, sealed=sealed)
            if not found:
                return start
            if isinstance(limit, ReadMaxRows):
                ((new,),) = found
                rows = limit.max_rows
                for (cut,) in database.run("find_cut", of=history, first=first, sealed=sealed, limit=rows):
                    sealed = max(cut, new + 1)
        return {"xid": sealed}

    def _check_deleted(self, database: Database, first: int) -> None:
        """Raise DataLost if retention has deleted rows that the stream has not read.

        A stream that begins with the earliest rows begins with those that there are.
        """
        if first == 0 or not self._options.fail_on_data_loss:
            return
        for (xid,) in database.run("find_deleted_history", history=self._table):
            if xid >= first:
                raise DataLost(self._table, first, xid)

    def _horizon(self) -> int:
        with self._open() as database:
            return read_horizon(database).sealed

    def _open(self) -> AbstractContextManager[Database]:
        return open_database(self._options.dsn, self._options.schema)

    # -- a batch

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Divide the batch among tasks."""
        partitions = self._history.plan((start["xid"], end["xid"]))
        # After the plan, which registers the read: from then on retention keeps the rows of the batch.
        with self._open() as database:
            self._check_deleted(database, start["xid"])
        return partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        return self._history.read(partition)

    def commit(self, end: Offset) -> None:
        """Do nothing: history is not deleted because one stream has read it."""

    def stop(self) -> None:
        """Do nothing: a stream holds no connection between batches."""
