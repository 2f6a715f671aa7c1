"""The data source `trioboss`: `spark.read`, `spark.readStream` and `df.write`."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from trioboss.pipeline.following import StreamReader
from trioboss.pipeline.options import ReadOptions, WriteOptions
from trioboss.pipeline.reading import BatchReader
from trioboss.pipeline.tables import find_table
from trioboss.pipeline.writing import BatchWriter

__all__ = ["TriobossSource"]


class TriobossSource(DataSource):
    """Jobs and their history, for reading; queues, for writing."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "trioboss"

    def schema(self) -> StructType:
        """The columns of the table, or those that the option `columns` names."""
        options = ReadOptions.parse(self.options)
        return find_table(options.table).schema(options.columns)

    def reader(self, schema: StructType) -> BatchReader:
        """For `spark.read`."""
        return BatchReader(ReadOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        """For `spark.readStream`."""
        return StreamReader(ReadOptions.parse(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """For `df.write`."""
        return BatchWriter(WriteOptions.parse(self.options), schema, overwrite)
