"""Attempts: those that did not end well have a row of their own; a completed job is the record of its last one."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["BAD_ENDS", "all_attempts"]

BAD_ENDS = ("failed", "expired", "lost")
"""Outcomes that use up a retry."""

_COLUMNS = ("queue", "job_id", "attempt", "singleton_key", "started_on", "ended_on", "outcome")


def all_attempts(jobs: DataFrame, attempts: DataFrame) -> DataFrame:
    """Every attempt that has ended, as the database saw it: from the claim to the end of its lease."""
    completed = jobs.where((F.col("state") == "completed") & F.col("started_on").isNotNull()).select(
        "queue",
        F.col("id").alias("job_id"),
        "attempt",
        "singleton_key",
        "started_on",
        F.col("completed_on").alias("ended_on"),
        F.col("state").alias("outcome"),
    )
    return completed.unionByName(attempts.select(*_COLUMNS))
