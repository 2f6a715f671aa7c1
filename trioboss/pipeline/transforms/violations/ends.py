"""Attempts over the limit, jobs with two ends or with retries left, attempts without an end."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.attempts import BAD_ENDS
from trioboss.pipeline.transforms.violations.finding import seconds_from, to_findings

__all__ = ["counted_ends", "two_ends"]


def counted_ends(trace: DataFrame) -> DataFrame:
    """Everything that is found by counting the attempts of each job, in one aggregation."""
    oldest = trace.where(~F.col("is_end")).agg(F.min("ended_on").alias("oldest"))
    jobs = _count_attempts(trace).crossJoin(F.broadcast(oldest))
    problems = F.filter(F.array(_over_limit(), _retries_left(), _missing_ends()), F.isnotnull)
    return to_findings(
        jobs.withColumn("problem", F.explode(problems)),
        F.col("problem.kind"),
        certain=F.col("problem.certain"),
        detail=F.col("problem.detail"),
    )


def _count_attempts(trace: DataFrame) -> DataFrame:
    """For each job: its last end, how many attempts are recorded, how many of them count, and how the last ended."""
    spends = F.col("is_attempt") & F.col("outcome").isin(*BAD_ENDS, "completed")
    is_bad = F.col("is_attempt") & ~F.col("is_end")
    return (
        trace.where(F.col("end").isNotNull())
        .groupBy("queue", "job_id", F.col("end.seq").alias("seq"))
        .agg(
            F.count_distinct(F.when(spends, F.col("attempt"))).alias("spent"),
            F.count_distinct(F.when(F.col("is_attempt"), F.col("attempt"))).alias("recorded"),
            F.max(F.when(F.col("is_end"), F.col("attempt"))).alias("attempt"),
            F.max_by("outcome", F.when(is_bad, F.col("attempt"))).alias("last_outcome"),
            F.max("singleton_key").alias("singleton_key"),
            F.max("ended_on").alias("at"),
            F.max_by("end", "ended_on").alias("end"),
        )
    )


def _problem(condition: Column, kind: str, certain: Column, detail: Column) -> Column:
    found = F.struct(F.lit(kind).alias("kind"), certain.alias("certain"), detail.alias("detail"))
    return F.when(condition, found)


def _over_limit() -> Column:
    """The job used more attempts than it had: one, and its retries. Released and cancelled ones are free."""
    counted = F.col("end.retry_count") + F.col("end.state").isin("completed", "failed").cast("int")
    used, allowed = F.greatest("spent", counted), F.col("end.retry_limit") + 1
    detail = F.format_string("%d attempts used, %d allowed", used, allowed)
    return _problem(used > allowed, "over the limit", F.lit(True), detail)


def _retries_left() -> Column:
    """The job failed although it had retries left.

    A handler can request that, and a job of a `stately` queue, or one of `send_singleton`, fails if the policy slot of
    its retry is taken. After a lease that ran out there was no such request.
    """
    left = F.col("end.retry_limit") - F.col("end.retry_count")
    has_slot = (F.col("end.policy") != "stately") & ~F.col("end.unique_until").eqNullSafe("started")
    certain = F.coalesce(F.col("last_outcome").isin("lost", "expired") & has_slot, F.lit(False))
    outcome = F.coalesce("last_outcome", F.lit("not recorded"))
    detail = F.format_string("failed with %d retries left, its last attempt: %s", left, outcome)
    return _problem((F.col("end.state") == "failed") & (left > 0), "retries left", certain, detail)


def _missing_ends() -> Column:
    """The job has an attempt that never ended: it was claimed, for its number is spent, and there is no record of it.

    Only jobs that were sent after the oldest record of an attempt are judged: older records may have been deleted.
    """
    missing = F.col("attempt") - F.col("recorded")
    detail = F.format_string("%d of %d attempts have no record", missing, F.col("attempt"))
    known = F.col("end.created_on") >= F.col("oldest")
    return _problem(known & (missing > 0), "no end", F.lit(True), detail)


def two_ends(trace: DataFrame) -> DataFrame:
    """Jobs that ended twice without another attempt, or again after they had completed; attempts with two records."""
    job = Window.partitionBy("queue", "job_id", "end.seq")
    ends = trace.where("is_end").withColumn("earlier", _lag(job.orderBy("ended_on", "attempt", "outcome")))
    again = (
        (F.col("earlier.outcome") == "completed")
        | (F.col("attempt") < F.col("earlier.attempt"))
        | (F.col("outcome").isin("completed", "failed") & (F.col("attempt") == F.col("earlier.attempt")))
    )
    records = Window.partitionBy("queue", "job_id", "end.seq", "attempt").orderBy("ended_on", "outcome")
    attempts = trace.where(F.col("is_attempt") & F.col("end").isNotNull())
    recorded = attempts.withColumn("earlier", _lag(records))
    # Two completed ends are already among the ends.
    both_completed = (F.col("outcome") == "completed") & (F.col("earlier.outcome") == "completed")
    found = ends.where(again).unionByName(recorded.where(F.col("earlier").isNotNull() & ~both_completed))
    return to_findings(
        found,
        "two ends",
        other_job=F.col("job_id"),
        other_attempt=F.col("earlier.attempt"),
        at=F.col("ended_on"),
        seconds=seconds_from("earlier.ended_on", "ended_on"),
        detail=F.concat(F.col("outcome"), F.lit(" after "), F.col("earlier.outcome")),
    )


def _lag(window: WindowSpec) -> Column:
    return F.lag(F.struct("outcome", "attempt", "ended_on")).over(window)
