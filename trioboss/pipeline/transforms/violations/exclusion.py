"""Attempts that ran at the same time, and jobs that waited at the same time, although their policy forbids it."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.violations.finding import seconds_from, to_findings

__all__ = ["both_waiting", "in_group_order", "overlaps"]

_RECLAIM_SECONDS = 0.1
"""A claim of a job that another worker claims and gives back meanwhile has an earlier time than that end. This takes
as long as a statement does."""

_SEND_SECONDS = 1.0
"""A send takes its time when its statement begins, and its position in the queue a moment later: two jobs that were
together for less than this are only a possible finding."""


def overlaps(trace: DataFrame, tolerance: float) -> DataFrame:
    """Attempts that ran at the same time although they exclude each other: of one key, or of one job."""
    rows = in_group_order(trace)
    before = F.col("before")
    came_second = before["ended_on"] <= F.col("ended_on")
    second_started = F.when(came_second, F.col("started_on")).otherwise(before["started_on"])
    seconds = seconds_from(second_started, F.least(before["ended_on"], F.col("ended_on")))
    same_job = before["job_id"] == F.col("job_id")
    # Two records of one attempt are two ends of it, and found as such.
    another = before["ended_on"].isNotNull() & (~same_job | (before["attempt"] != F.col("attempt")))
    detail = F.when(F.col("group") == "job", F.lit("attempts of one job")).otherwise(F.col("end.policy"))
    return to_findings(
        rows.withColumn("seconds", seconds).where((F.col("seconds") > tolerance) & another),
        "overlap",
        other_job=before["job_id"],
        other_attempt=before["attempt"],
        at=F.col("started_on"),
        certain=~same_job | ~came_second | (F.col("seconds") > _RECLAIM_SECONDS),
        detail=detail,
    )


def in_group_order(trace: DataFrame) -> DataFrame:
    """Attempts, each with the one `before` it in its group that ended last, and whether it is its job's first."""
    group = Window.partitionBy("queue", "group", "group_key").orderBy(*_ORDER)
    before = F.max(F.struct("ended_on", "started_on", "job_id", "attempt")).over(
        group.rowsBetween(Window.unboundedPreceding, -1)
    )
    nth = F.row_number().over(
        Window.partitionBy("queue", "group", "group_key", "job_id", "end.seq").orderBy(*_ORDER)
    )
    return trace.where("is_attempt").withColumn("before", before).withColumn("is_first", nth == 1)


_ORDER = ("started_on", "ended_on", "job_id", "attempt")


def both_waiting(jobs: DataFrame, tolerance: float) -> DataFrame:
    """Two jobs of one key that were in a queue together: of `short` both waiting, of `exclusive` both not ended.

    A job was certainly there from its start_after on, which is when it was sent, was due, was resumed or was to be
    retried. Jobs of one statement have the same time of sending, however long the statement took; so they are only
    possible findings, as are jobs that were together no longer than a send may take.
    """
    is_short = F.col("policy") == "short"
    once = (F.col("attempt") <= 1) & (F.col("retry_count") == 0)
    until = F.when(is_short, F.coalesce("started_on", "completed_on")).otherwise(F.col("completed_on"))
    there = (
        jobs.where(F.col("policy").isin("short", "exclusive") & (~is_short | once))
        .withColumn("since", F.greatest("start_after", "created_on"))
        .withColumn("until", until)
        .withColumn("sent_together", F.count("*").over(Window.partitionBy("queue", "created_on")) > 1)
        .withColumn("key", F.coalesce("singleton_key", F.lit("")))
        .where(F.col("since") < F.col("until"))
    )
    key = Window.partitionBy("queue", "policy", "key").orderBy("since", "seq", "id")
    longest = F.max(F.struct("until", "id", "seq", "attempt")).over(
        key.rowsBetween(Window.unboundedPreceding, -1)
    )
    rows = there.withColumn("other", longest)
    seconds = seconds_from("since", F.least("other.until", "until"))
    return to_findings(
        rows.withColumn("seconds", seconds).where((F.col("seconds") > tolerance) & _is_another_job()),
        "waiting together",
        key=F.col("singleton_key"),
        job=F.col("id"),
        other_job=F.col("other.id"),
        other_attempt=F.col("other.attempt"),
        at=F.col("since"),
        certain=~F.col("sent_together") & (F.col("seconds") > tolerance + _SEND_SECONDS),
        detail=F.col("policy"),
    )


def _is_another_job() -> Column:
    """A lake also has ends that were undone: they are the same job."""
    return (F.col("other.id") != F.col("id")) | (F.col("other.seq") != F.col("seq"))
