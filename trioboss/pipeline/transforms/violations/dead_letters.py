"""Dead letter jobs that are missing, or were sent twice."""

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.violations.finding import to_findings

__all__ = ["doubled_dead_letters", "missing_dead_letters"]

_SOURCE = ("source_queue", "source_id")


def doubled_dead_letters(dead: DataFrame, attempts: DataFrame) -> DataFrame:
    """Dead letter jobs of one failure of one job.

    The failure sends its dead letter job with its own time, which the record of the attempt has, too. So two of one
    time are doubled, and so is one whose time no failure has, beside one of a failure. Records of attempts are deleted
    by age: the time of a dead letter job that is older than all of them is not searched for.
    """
    sent = dead.where(F.col("source_id").isNotNull()).dropDuplicates(["queue", "id", "seq"])
    groups = (
        _with_failure(sent, attempts)
        .groupBy(*_SOURCE, "failed_on")
        .agg(
            F.count("*").alias("count"),
            F.min(F.struct("id", "queue", "singleton_key", "attempt")).alias("first"),
            F.max("id").alias("last"),
        )
    )
    return to_findings(
        groups.where(F.col("count") > 1),
        "two dead letters",
        queue=F.col("first.queue"),
        key=F.col("first.singleton_key"),
        job=F.col("first.id"),
        attempt=F.col("first.attempt"),
        other_job=F.col("last"),
        at=F.col("failed_on"),
        detail=F.format_string(
            "%d dead letter jobs of one failure of job %s of %s",
            F.col("count"), F.col("source_id"), F.col("source_queue"),
        ),
    )  # fmt: skip


def _with_failure(sent: DataFrame, attempts: DataFrame) -> DataFrame:
    """Dead letter jobs with ``failed_on``: the time of the failure that each is counted to."""
    failures = attempts.select(
        F.col("queue").alias("source_queue"),
        F.col("job_id").alias("source_id"),
        F.col("ended_on").alias("created_on"),
        F.lit(True).alias("has_failure"),
    ).distinct()
    oldest = attempts.agg(F.min("ended_on").alias("oldest"))
    of_source = Window.partitionBy(*_SOURCE)
    is_stray = F.col("has_failure").isNull() & (F.col("created_on") >= F.col("oldest"))
    known = sent.join(failures, [*_SOURCE, "created_on"], "left").crossJoin(F.broadcast(oldest))
    # A stray one counts to the failure before it.
    failed_on = F.when(is_stray & F.max("has_failure").over(of_source), F.lit(None)).otherwise(
        F.col("created_on")
    )
    latest = F.last(failed_on, ignorenulls=True).over(of_source.orderBy("created_on"))
    first = F.first(failed_on, ignorenulls=True).over(
        of_source.orderBy("created_on").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    )
    return known.withColumn("failed_on", F.coalesce(latest, first))


def missing_dead_letters(jobs: DataFrame, dead: DataFrame, until: datetime | None) -> DataFrame:
    """Failed jobs without a dead letter job, or a job that a redrive has made of it.

    Only ends up to ``until`` are judged, when the queued jobs were read: a later dead letter job is not among them.
    Without it, as from a lake, the queued jobs are not known. None of these findings is certain. The dead letter job
    may have been deleted, which leaves no trace, may have ended in a queue that keeps no completed jobs, or may have
    been refused by the policy of its queue.
    """
    failed = jobs.where((F.col("state") == "failed") & F.col("dead_letter").isNotNull())
    unless = "it was deleted"
    if until is None:
        unless = "it is still queued, ended after the last export or was deleted"
    else:
        failed = failed.where(F.col("completed_on") <= F.lit(until))
    sent = dead.select("source_queue", F.coalesce("source_id", "redriven_from").alias("source_id")).distinct()
    is_of = (F.col("f.id") == F.col("s.source_id")) & (
        F.col("s.source_queue").isNull() | (F.col("f.queue") == F.col("s.source_queue"))
    )
    return to_findings(
        failed.alias("f").join(sent.alias("s"), is_of, "left_anti"),
        "no dead letter",
        key=F.col("singleton_key"),
        job=F.col("id"),
        at=F.col("completed_on"),
        certain=F.lit(False),
        detail=F.concat(F.lit("no dead letter job in "), F.col("dead_letter"), F.lit(f", unless {unless}")),
    )
