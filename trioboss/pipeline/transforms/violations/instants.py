"""Starts before their time, and ends before their start or before the send."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.violations.finding import seconds_from, to_findings

__all__ = ["wrong_instants"]


def wrong_instants(trace: DataFrame, tolerance: float) -> DataFrame:
    """All checks of one row by itself, in one pass.

    The start_after of an archived job is that of its last attempt, if that attempt ended it. A job that was fetched by
    hand has no worker, and may have been fetched before its time (`ignore_start_after`).
    """
    last = F.col("is_end") & F.col("outcome").isin("completed", "failed")
    is_retry = F.col("end.retry_count") > 0
    early = seconds_from("started_on", "end.start_after")
    by_worker = F.col("worker").isNotNull()
    problems = [
        _when(F.lit(True), "end before start", seconds_from("ended_on", "started_on"), F.lit(True)),
        _when(F.col("is_end"), "end before send", seconds_from("ended_on", "end.created_on"), F.lit(True)),
        _when(
            F.col("is_end"), "start before send", seconds_from("started_on", "end.created_on"), F.lit(True)
        ),
        _when(last & ~is_retry, "early start", early, by_worker),
        _when(last & is_retry, "early retry", early, by_worker),
    ]
    problem = F.explode(F.filter(F.array(*problems), lambda found: found["seconds"] > tolerance))
    return to_findings(
        trace.withColumn("problem", problem),
        F.col("problem.kind"),
        at=F.coalesce("started_on", "ended_on"),
        seconds=F.col("problem.seconds"),
        certain=F.col("problem.certain"),
        detail=F.concat(
            F.format_string("%.6f s too early", F.col("problem.seconds")),
            F.when(F.col("problem.certain"), "").otherwise(", unless it was fetched with ignore_start_after"),
        ),
    )


def _when(condition: Column, kind: str, seconds: Column, certain: Column) -> Column:
    found = F.struct(F.lit(kind).alias("kind"), seconds.alias("seconds"), certain.alias("certain"))
    return F.when(condition & seconds.isNotNull(), found)
