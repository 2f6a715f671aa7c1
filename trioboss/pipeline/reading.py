"""The batch side of the source: plans on the driver, reads on the executors."""

from collections.abc import Iterable, Iterator

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from trioboss.errors import UsageError
from trioboss.pipeline.ahead import work_ahead
from trioboss.pipeline.chunks import Chunk, Query, open_chunks
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.decoding import decode
from trioboss.pipeline.filters import bounds_of, filter_to_sql
from trioboss.pipeline.lease import Lease
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Days, Part, divide, list_leaves, plan, read_horizon, whole
from trioboss.pipeline.tables import Table, find_table

__all__ = ["BatchReader", "check_schema", "read_part"]


def check_schema(table: Table, schema: StructType) -> tuple[str, ...]:
    """The columns that were asked for, by ``.schema(…)`` or all; each with the type it has here."""
    for field in schema.fields:
        expected = table.get(field.name).type
        if field.dataType != expected:
            raise UsageError(f"schema: {table.name}.{field.name} is {expected.simpleString()}")
    return tuple(schema.fieldNames())


def read_part(
    options: ReadOptions, query: Query, schema: StructType, part: InputPartition, lease: Lease
) -> Iterator[pa.RecordBatch]:
    """What one task does."""
    if not isinstance(part, Part):  # Spark makes up a partition where we planned none
        return
    arrow = to_arrow_schema(schema, timezone="UTC")
    query = attrs.evolve(query, first_xid=part.first, end_xid=part.end)

    def read() -> Iterator[Chunk]:
        with open_chunks(options, query, lease.keep) as chunks:
            for piece in part.pieces:
                yield from chunks.read(piece)

    for chunk in work_ahead(read):
        yield from (decode(rows, arrow) for rows in chunk)


class BatchReader(DataSourceReader):
    """Reads a table as it is now. Of history: what is sealed, so that all tasks see the same rows."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        table = find_table(options.table)
        self._options = options
        self._schema = schema
        self._query = Query(table, check_schema(table, schema))
        self._days = Days()
        self._lease = Lease(options.dsn, options.schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that can be said in SQL; return the others to Spark."""
        table = self._query.table
        conditions = {id(asked): filter_to_sql(asked, table) for asked in filters}
        for asked in filters:
            if conditions[id(asked)] is not None:
                self._days = self._days.narrowed(*bounds_of(asked, table))
        taken = tuple(condition for condition in conditions.values() if condition is not None)
        self._query = attrs.evolve(self._query, conditions=self._query.conditions + taken)
        return [asked for asked in filters if conditions[id(asked)] is None]

    def partitions(self) -> list[InputPartition]:
        """Cut the table into parts."""
        options = self._options
        with open_database(options.dsn, options.schema) as database:
            if self._query.table.is_history:
                return list(self._divide_history(database))
            leaves = list_leaves(database, self._query.table.name, self._days)
            return list(divide([whole(leaf) for leaf in leaves], options.partitions))

    def _divide_history(self, database: Database) -> list[Part]:
        options, horizon = self._options, read_horizon(database)
        if options.end_xid is not None:
            horizon = attrs.evolve(horizon, sealed=min(horizon.sealed, options.end_xid))
        if not horizon.standby:
            self._lease.begin(database, self._days)
        first = options.first_xid or 0
        # After the horizon was read: what is sealed by then is in the blocks that are there now.
        leaves = list_leaves(database, self._query.table.name, self._days)
        pieces = plan(database, leaves, first, horizon, options.partitions)
        return divide(pieces, options.partitions, first, horizon.sealed)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        return read_part(self._options, self._query, self._schema, partition, self._lease)
