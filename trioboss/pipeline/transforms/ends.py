"""The ends of jobs. A lake keeps ends that were undone: a failed job that was retried, a cancelled one resumed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["last_ends"]

_JOB = ("queue", "id", "seq")
"""These columns name one job: its id may be used again once history has forgotten the job."""


def last_ends(jobs: DataFrame) -> DataFrame:
    """Each job once, with its last end, as the database has it.

    Only an end that is not a completion can be followed by another, so only those are compared with later ones.
    """
    undone = (
        jobs.where(F.col("state") != "completed")
        .select(*_JOB, "completed_on")
        .join(jobs.select(*_JOB, F.col("completed_on").alias("later")), list(_JOB))
        .where(F.col("later") > F.col("completed_on"))
        .select(*_JOB, "completed_on")
        .distinct()
    )
    return jobs.join(undone, [*_JOB, "completed_on"], "left_anti")
