"""The ends of jobs. A lake keeps ends that were taken back: a failed job that was retried, a cancelled one resumed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["LIFE", "last_ends"]

LIFE = ("queue", "id", "seq")
"""What names one life of a job: an id may be used again once history has forgotten its first use."""


def last_ends(jobs: DataFrame) -> DataFrame:
    """Each job once, with its last end. Only what did not complete can have a later end, so only that is looked up."""
    taken_back = (
        jobs.where(F.col("state") != "completed")
        .select(*LIFE, "completed_on")
        .join(jobs.select(*LIFE, F.col("completed_on").alias("later")), list(LIFE))
        .where(F.col("later") > F.col("completed_on"))
        .select(*LIFE, "completed_on")
        .distinct()
    )
    return jobs.join(taken_back, [*LIFE, "completed_on"], "left_anti")
