"""Exports history to a lake of Parquet files, each row once, however often the export is killed and started again.

The lake has one folder a table, day and queue:

    PATH/jobs/date=2026-11-16/queue=email/part-….parquet        the ended jobs, by the day of completed_on (UTC)
    PATH/attempts/date=2026-11-16/queue=email/part-….parquet    the attempts that did not end well, by ended_on
    PATH/_manifest/…                                            what has been exported so far

The columns are those of `spark.read.format("trioboss")`: the tables `archive` and `attempt`. `date` and `queue` are in
the names of the folders (`queue` encoded as Spark does it), so that `spark.read.parquet(PATH + "/jobs")` has them as
columns.
"""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["archive"]


def archive(
    dsn: str | None,
    to: str | Path,
    *,
    spark: SparkSession | None = None,
    schema: str = "trioboss",
    follow: bool = False,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Export what is new in history to the lake ``to``."""
    raise NotImplementedError
