"""Strict FIFO: jobs that started before a job of their key that was in line before them."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.times import add_seconds
from trioboss.pipeline.transforms.violations.exclusion import in_group_order
from trioboss.pipeline.transforms.violations.finding import seconds_from, to_findings

__all__ = ["passed_retries", "starts_out_of_order"]

_FIFO = "key_strict_fifo"
_PROMOTE_SECONDS = 0.1
"""A deferred job is in line a moment after its time has come."""


def starts_out_of_order(trace: DataFrame, tolerance: float, unordered: Sequence[str] = ()) -> DataFrame:
    """A job that started before another of its key that was sent before it and was in line.

    ``unordered`` are the queues with `commit_order` off. A job with retries no longer has the time at which it was
    first in line, and is not judged as the one that was passed.
    """
    first = _first_starts(trace, unordered)
    passed = first.where(
        (F.col("highest_before") > F.col("seq")) & F.col("due").isNotNull() & ~F.col("is_dead_letter")
    )
    passing = first.where(F.col("lowest_after") < F.col("seq"))
    pairs = passing.alias("j").join(
        passed.alias("i"),
        (F.col("j.queue") == F.col("i.queue"))
        & (F.col("j.singleton_key") == F.col("i.singleton_key"))
        & (F.col("i.seq") < F.col("j.seq"))
        & (add_seconds("j.started_on", tolerance) < F.col("i.started_on"))
        & (add_seconds("i.due", tolerance) < F.col("j.ready")),
    )
    worst = pairs.groupBy("i.queue", "i.singleton_key", "i.job_id", "i.attempt", "i.started_on").agg(
        F.min(F.struct("j.started_on", "j.job_id", "j.attempt")).alias("j")
    )
    return to_findings(
        worst.withColumn("seconds", seconds_from("j.started_on", "started_on")),
        "order",
        job=F.col("j.job_id"),
        attempt=F.col("j.attempt"),
        other_job=F.col("job_id"),
        other_attempt=F.col("attempt"),
        at=F.col("j.started_on"),
        detail=F.lit("started before a job of its key that was sent before it"),
    )


def _first_starts(trace: DataFrame, unordered: Sequence[str]) -> DataFrame:
    """The first start of each job, with when it was in line, and the numbers of those that started before and after."""
    key = Window.partitionBy("queue", "singleton_key").orderBy("started_on", "seq")
    is_deferred = F.col("end.start_after") > F.col("end.created_on")
    in_line = F.when(is_deferred, add_seconds("end.start_after", _PROMOTE_SECONDS)).otherwise(
        F.col("end.start_after")
    )
    sent = F.when(_claimed_once(), F.col("end.start_after")).otherwise(F.col("end.created_on"))
    return (
        in_group_order(trace)
        .where((F.col("end.policy") == _FIFO) & F.col("is_first") & ~F.col("queue").isin(*unordered))
        .select(
            "queue",
            "singleton_key",
            "job_id",
            "attempt",
            "started_on",
            F.col("end.seq").alias("seq"),
            F.when(_claimed_once(), in_line).alias("due"),
            F.greatest(F.col("before.ended_on"), sent).alias("ready"),
            F.col("end.source_queue").isNotNull().alias("is_dead_letter"),
        )
        .withColumn("highest_before", F.max("seq").over(key.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn("lowest_after", F.min("seq").over(key.rowsBetween(1, Window.unboundedFollowing)))
    )


def passed_retries(trace: DataFrame, tolerance: float) -> DataFrame:
    """A job that started while another of its key was between two attempts, and owned the key."""
    of_fifo = (F.col("end.policy") == _FIFO) & (F.col("is_attempt") | (F.col("outcome") == "cancelled"))
    moment = F.when(F.col("is_attempt"), F.col("started_on")).otherwise(F.col("ended_on"))
    key = Window.partitionBy("queue", "group", "group_key").orderBy(
        moment, "started_on", "ended_on", "job_id", "attempt"
    )
    owner = F.struct("job_id", "attempt", "ended_on", "outcome", "last_attempt", "end", "is_attempt")
    rows = trace.where(of_fifo).withColumn("owner", F.lag(owner).over(key))
    other = F.col("owner")
    due = F.when(_claimed_once(), F.col("end.start_after")).otherwise(F.col("end.created_on"))
    # The owner cannot have been cancelled and resumed in between: that would have moved its start_after.
    certain = (
        (other["attempt"] == other["last_attempt"] - 1)
        & (other["end"]["start_after"] <= F.greatest(other["ended_on"], due))
        & (other["end"]["seq"] < F.col("end.seq"))
    )
    between = F.lit("started between two attempts of a job of its key")
    return to_findings(
        rows.where(
            F.col("is_attempt")
            & other["is_attempt"]
            & (other["job_id"] != F.col("job_id"))
            & (other["outcome"] != "cancelled")
            & (other["attempt"] < other["last_attempt"])
            & (add_seconds("started_on", tolerance) >= other["ended_on"])
        ),
        "passed a retry",
        other_job=other["job_id"],
        other_attempt=other["attempt"],
        at=F.col("started_on"),
        seconds=seconds_from(other["ended_on"], "started_on"),
        detail=F.when(certain, between).otherwise(
            F.concat(between, F.lit(", unless that was cancelled and resumed"))
        ),
        certain=certain,
    )


def _claimed_once() -> Column:
    """The job was claimed once, so that its start_after is still the first."""
    return (F.col("last_attempt") == 1) & (F.col("end.retry_count") == 0)
