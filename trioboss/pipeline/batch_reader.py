"""The batch side of the source: `spark.read`.

Spark plans the read of a DataFrame once, on the driver, and uses that plan for every query on the DataFrame: up to
Spark 4.3 it keeps the plan on a source object that all these queries share. So the plan has nothing in it that belongs
to one query, neither a filter nor the present state of the table. It is a list of shares (see `planning`), and each
task determines the contents of its share when it runs.

That is also why the source takes no filters from Spark (`pushFilters`): those of one query would be applied to the
next. The options `queue`, `since` and `until` belong to the DataFrame, and the server applies them.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from trioboss.errors import UsageError
from trioboss.pipeline.chunks import Chunk, ChunkReader
from trioboss.pipeline.columns import Table, find_table
from trioboss.pipeline.database import open_database
from trioboss.pipeline.history_reader import HistoryReader, decode_chunks
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.query import Query

__all__ = ["BatchReader", "check_schema"]


def check_schema(table: Table, schema: StructType) -> tuple[str, ...]:
    """The columns that were asked for, by ``.schema(…)`` or all; each must have the type that the table gives it."""
    for field in schema.fields:
        expected = table.get(field.name).type
        if field.dataType != expected:
            raise UsageError(f"schema: {table.name}.{field.name} is {expected.simpleString()}")
    return tuple(schema.fieldNames())


class BatchReader(DataSourceReader):
    """Reads a table as it is when a query begins."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        table = find_table(options.table)
        self._options = options
        self._schema = schema
        self._query = Query.of(options, table, check_schema(table, schema)).within(options.first_xid, None)
        self._history = HistoryReader(options, self._query, schema)

    def partitions(self) -> list[InputPartition]:
        """Divide the table among tasks."""
        if not self._query.table.is_history:
            # Rows of other tables change and move to other blocks: only a single statement sees each of them once.
            return [InputPartition(0)]
        first, end = self._options.first_xid, self._options.end_xid
        return self._history.plan(None if end is None else (first or 0, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task."""
        if self._query.table.is_history:
            return self._history.read(partition)
        return decode_chunks(self._read_whole, self._schema, self._query)

    def _read_whole(self) -> Iterator[Chunk]:
        with open_database(self._options.dsn, self._options.schema) as database:
            yield ChunkReader(database, self._options, self._query).read_whole()
