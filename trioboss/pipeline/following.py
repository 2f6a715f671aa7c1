"""The stream side of the source: new history, each row once, in the order of a watermark without gaps.

An offset is the number of a transaction: everything that transactions before it wrote has been read. A batch ends at
the horizon, the oldest transaction still under way (the snapshot's xmin): whatever it and younger ones write comes in
a later batch, however they overtake each other. Times and sequences would not do: a row with a low number may become
visible after one with a higher number has been read.
"""

from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from trioboss.errors import UsageError
from trioboss.pipeline.chunks import Query
from trioboss.pipeline.database import open_database
from trioboss.pipeline.lease import Lease
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Days, divide, list_leaves, plan, read_horizon
from trioboss.pipeline.reading import check_schema, read_part
from trioboss.pipeline.tables import find_table

__all__ = ["StreamReader"]

Offset = dict[str, int]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a history table."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        table = find_table(options.table)
        if not table.is_history:
            raise UsageError(
                f"table: {table.name!r} is not history: only archive and attempt can be followed"
            )
        self._options = options
        self._schema = schema
        self._query = Query(table, check_schema(table, schema))
        self._target: int | None = None

    # -- offsets, on the driver

    def initialOffset(self) -> Offset:
        """Where a stream without a checkpoint begins."""
        start = self._options.start
        if start == "latest":
            return {"xid": self._horizon()}
        return {"xid": 0 if start == "earliest" else int(start)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a batch may have."""
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """All that is there now, and nothing that comes later."""
        self._target = self._horizon()

    def reportLatestOffset(self) -> Offset:
        """How far the stream could be."""
        return {"xid": self._horizon()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Where the next batch ends; where it starts if there is nothing new."""
        first = start["xid"]
        history = {"archive": self._query.table.name}
        with open_database(self._options.dsn, self._options.schema) as database:
            sealed = read_horizon(database).sealed
            if sealed < first:
                raise UsageError(
                    f"the stream is at transaction {first}, the database at {sealed}: it was restored from a dump, "
                    "or is another one; begin with a new checkpoint"
                )
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

    def _horizon(self) -> int:
        with open_database(self._options.dsn, self._options.schema) as database:
            return read_horizon(database).sealed

    # -- a batch

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Cut the batch into parts."""
        with open_database(self._options.dsn, self._options.schema) as database:
            leaves = list_leaves(database, self._query.table.name, Days())
            horizon = attrs.evolve(read_horizon(database), sealed=end["xid"])
            pieces = plan(database, leaves, start["xid"], horizon, self._options.partitions)
        return list(divide(pieces, self._options.partitions, start["xid"], end["xid"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        lease = Lease(self._options.dsn, self._options.schema)
        return read_part(self._options, self._query, self._schema, partition, lease)

    def commit(self, end: Offset) -> None:
        """Nothing to forget: history belongs to others, too."""

    def stop(self) -> None:
        """Nothing is held between batches."""
