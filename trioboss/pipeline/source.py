"""The data source `trioboss`: `spark.read`, `spark.readStream` and `df.write`."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from trioboss.pipeline.batch_reader import BatchReader
from trioboss.pipeline.batch_writer import BatchWriter
from trioboss.pipeline.columns import find_table
from trioboss.pipeline.options import ReadOptions, WriteOptions
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
        options = ReadOptions.parse(self.options)
        return find_table(options.table).schema(options.columns or None)

    def reader(self, schema: StructType) -> BatchReader:
        """The reader for `spark.read`."""
        return BatchReader(ReadOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        """The reader for `spark.readStream`."""
        return StreamReader(ReadOptions.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer for `df.write`."""
        return BatchWriter(WriteOptions.parse(self.options), schema, overwrite)
