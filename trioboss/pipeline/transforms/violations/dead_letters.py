"""Dead letter jobs that are missing, or were sent twice."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.violations.finding import to_findings

__all__ = ["doubled_dead_letters", "missing_dead_letters"]


def doubled_dead_letters(jobs: DataFrame) -> DataFrame:
    """Dead letter jobs of one end of one job. Each end sends one, at its own time."""
    ends = jobs.where(F.col("source_id").isNotNull()).dropDuplicates(["queue", "id", "seq"])
    sent = ends.groupBy("source_queue", "source_id", "created_on").agg(
        F.count("*").alias("count"),
        F.min(F.struct("id", "queue", "singleton_key", "attempt")).alias("first"),
        F.max("id").alias("last"),
    )
    return to_findings(
        sent.where(F.col("count") > 1),
        "two dead letters",
        queue=F.col("first.queue"),
        key=F.col("first.singleton_key"),
        job=F.col("first.id"),
        attempt=F.col("first.attempt"),
        other_job=F.col("last"),
        at=F.col("created_on"),
        detail=F.format_string(
            "%d dead letter jobs of job %s of %s", F.col("count"), F.col("source_id"), F.col("source_queue")
        ),
    )


def missing_dead_letters(jobs: DataFrame, queued: DataFrame, until: datetime) -> DataFrame:
    """Failed jobs without a dead letter job, neither in history nor among the ``queued`` ones.

    Only ends up to ``until`` are judged, when the queued jobs were read: a later dead letter job can be in neither.
    None of these findings is certain. The dead letter job may have been deleted, may have ended in a queue that keeps
    no completed jobs, or may have had no place under the policy of its queue.
    """
    failed = jobs.where(
        (F.col("state") == "failed")
        & F.col("dead_letter").isNotNull()
        & (F.col("completed_on") <= F.lit(until))
    )
    keys = ("source_queue", "source_id")
    sent = (
        jobs.select(*keys).unionByName(queued.select(*keys)).where(F.col("source_id").isNotNull()).distinct()
    )
    without = failed.alias("f").join(
        sent.alias("s"),
        (F.col("f.queue") == F.col("s.source_queue")) & (F.col("f.id") == F.col("s.source_id")),
        "left_anti",
    )
    return to_findings(
        without,
        "no dead letter",
        key=F.col("singleton_key"),
        job=F.col("id"),
        at=F.col("completed_on"),
        certain=F.lit(False),
        detail=F.concat(
            F.lit("no dead letter job in "), F.col("dead_letter"), F.lit(", unless it was deleted")
        ),
    )
