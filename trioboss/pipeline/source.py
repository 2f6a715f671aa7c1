"""The data source `trioboss`: `spark.read`, `spark.readStream` and `df.write`.

Spark imports this module in several processes one after the other before the first row is read: one finds the source,
one asks for its columns, one plans the query, and the others run its tasks. Each of them imports only the side that it
needs, because together the imports would take most of the time of the first query of a session.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from trioboss.pipeline.batch_reader import BatchReader
    from trioboss.pipeline.batch_writer import BatchWriter
    from trioboss.pipeline.columns import Table
    from trioboss.pipeline.options import ReadOptions
    from trioboss.pipeline.stream_reader import StreamReader

__all__ = ["TriobossSource"]


class TriobossSource(DataSource):
    """Jobs and their history, for reading; queues, for writing."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "trioboss"

    def schema(self) -> StructType:
        """The columns of the table, or those that the option `columns` names."""
        options = self._read_options()
        table: Table = _load("columns").find_table(options.table)
        return table.schema(options.columns or None)

    def reader(self, schema: StructType) -> "BatchReader":
        """The reader for `spark.read`."""
        reader: BatchReader = _load("batch_reader").BatchReader(self._read_options(), schema)
        return reader

    def streamReader(self, schema: StructType) -> "StreamReader":
        """The reader for `spark.readStream`."""
        reader: StreamReader = _load("stream_reader").StreamReader(self._read_options(), schema)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> "BatchWriter":
        """The writer for `df.write`."""
        options = _load("options").WriteOptions.parse(self.options)
        writer: BatchWriter = _load("batch_writer").BatchWriter(options, schema, overwrite)
        return writer

    def _read_options(self) -> "ReadOptions":
        options: ReadOptions = _load("options").ReadOptions.parse(self.options)
        return options


def _load(name: str) -> Any:
    return import_module(f"trioboss.pipeline.{name}")
