"""Sessions of Spark Connect: the driver and its Java run on a server, and only plans and results are exchanged."""

from pyspark.sql import SparkSession

__all__ = ["is_remote"]


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
