"""A lake of Parquet files as DataFrames. See `jobs/archive.py` for what is where."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, StructType

from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.files import Files

__all__ = ["FOLDERS", "read_lake", "utc_day"]

FOLDERS = {"archive": "jobs", "attempt": "attempts"}
"""The folder of each history table."""


def read_lake(spark: SparkSession, lake: str, table: str = "archive") -> DataFrame:
    """The rows of a table that a lake has, with the column `date`; none if it has no such folder.

    With the types of the table: left alone, Spark would take a queue called 007 for the number 7.
    """
    files = Files(spark, lake)
    schema = StructType([*TABLES[table].schema().fields, StructField("date", DateType())])
    if not files.exists(FOLDERS[table]):
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(files.at(FOLDERS[table]))


def utc_day(column: str) -> Column:
    """The day of an instant in UTC, whatever the time zone of the session."""
    days = F.floor(F.unix_seconds(F.col(column)) / F.lit(86400)).cast("int")
    return F.date_add(F.lit("1970-01-01").cast("date"), days)
