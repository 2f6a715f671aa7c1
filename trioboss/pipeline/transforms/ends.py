"""The ends of jobs. A lake keeps ends that were undone: a failed job that was retried, a cancelled one resumed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["last_ends"]

_JOB = ("queue", "id", "seq")
"""These columns name one job: its id may be used again once history has forgotten the job."""
_FEW = 200_000
"""So many rows of these columns can be sent to every task."""


def last_ends(jobs: DataFrame, every: DataFrame | None = None) -> DataFrame:
    """Each job once, with its last end, as the database has it. The ends that were undone are found at once.

    They are few, and all tables of a report leave them out: so they are found once and sent to every task, instead of
    a shuffle of all jobs for each table. ``every``: the ends among which a later one is searched for, if ``jobs`` are
    those of a period: a job that ended again after the period counts in a later one.
    """
    undone = _find_undone(jobs, jobs if every is None else every).localCheckpoint()
    if undone.isEmpty():
        return jobs
    return jobs.join(F.broadcast(undone), [*_JOB, "completed_on"], "left_anti")


def _find_undone(jobs: DataFrame, every: DataFrame) -> DataFrame:
    """Only an end that is not a completion can be followed by another, so only those are compared with later ones."""
    unsuccessful = jobs.where(F.col("state") != "completed").select(*_JOB, "completed_on")
    if unsuccessful.count() < _FEW:
        unsuccessful = F.broadcast(unsuccessful)
    return (
        every.select(*_JOB, F.col("completed_on").alias("later"))
        .join(unsuccessful, list(_JOB))
        .where(F.col("later") > F.col("completed_on"))
        .select(*_JOB, "completed_on")
        .distinct()
    )
