"""The figures of each queue and hour. All answers but one shuffle only their totals: a row for a queue and hour."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.attempts import BAD_ENDS
from trioboss.pipeline.transforms.times import (
    add_seconds,
    due_on,
    hour_of,
    hours_between,
    percentiles,
    seconds_between,
    spread,
)

__all__ = ["attempts_by_hour", "by_hour", "concurrency_by_hour", "jobs_by_hour"]

_HOUR = 3600.0
_MINUTE = 60_000_000  # in microseconds


def jobs_by_hour(jobs: DataFrame) -> DataFrame:
    """For each queue and hour, all about its jobs, in one scan.

    - arrivals: how many of the jobs were sent;
    - completions, failures, cancellations: how many ended, and how;
    - wait: how long jobs waited until their last attempt started, from when it could; by the hour of the start;
    - oldest_age: how old the oldest job became that waited at some time in the hour.
    """
    sent, started, ended = (hour_of(name) for name in ("created_on", "started_on", "completed_on"))
    waited = F.when(_has_run(), hours_between("due", "started_on"))
    touched = F.array_distinct(F.concat(F.array(sent, ended), F.coalesce(waited, F.array())))
    hours = jobs.withColumn("due", due_on()).select(
        "queue", "state", "due", "started_on", _has_run().alias("ran"), sent.alias("sent"), started.alias("started"),
        ended.alias("ended"), waited.alias("waited"), F.explode(touched).alias("hour"),
    )  # fmt: skip
    hour, ends = F.col("hour"), F.col("hour") == F.col("ended")
    until = F.least(F.col("started_on"), add_seconds("hour", _HOUR))
    starts = F.col("ran") & (hour == F.col("started"))
    waits = F.array_contains("waited", hour)
    return hours.groupBy("queue", "hour").agg(
        _count(hour == F.col("sent"), "arrivals"),
        _count(ends & (F.col("state") == "completed"), "completions"),
        _count(ends & (F.col("state") == "failed"), "failures"),
        _count(ends & (F.col("state") == "cancelled"), "cancellations"),
        percentiles(F.when(starts, seconds_between("due", "started_on")), "wait"),
        F.max(F.when(waits, seconds_between("due", until))).alias("oldest_age"),
    )


def attempts_by_hour(all_attempts: DataFrame) -> DataFrame:
    """For each queue and hour, all about its attempts but concurrency, in one scan.

    - run: how long attempts ran, by the hour of the end;
    - bad_ends, releases: how many ended in a retry or were released;
    - worker_seconds: the workers' time they took; an attempt that runs across hours takes its share of each;
    - carried: how many were running when the hour began.
    """
    parts = all_attempts.select(
        "queue", "started_on", "ended_on", "outcome", hour_of("ended_on").alias("ended"),
        F.explode(hours_between("started_on", "ended_on")).alias("hour"),
    )  # fmt: skip
    ends = F.col("hour") == F.col("ended")
    begin = F.greatest(F.col("started_on"), F.col("hour"))
    end = F.least(F.col("ended_on"), add_seconds("hour", _HOUR))
    return parts.groupBy("queue", "hour").agg(
        percentiles(F.when(ends, seconds_between("started_on", "ended_on")), "run"),
        _count(ends & F.col("outcome").isin(*BAD_ENDS), "bad_ends"),
        _count(ends & (F.col("outcome") == "released"), "releases"),
        F.sum(seconds_between(begin, end)).alias("worker_seconds"),
        _count((F.col("started_on") < F.col("hour")) & (F.col("hour") < F.col("ended_on")), "carried"),
    )


def concurrency_by_hour(all_attempts: DataFrame) -> DataFrame:
    """The most attempts that ran at once in the hour: an estimate of the slots there are.

    Starts and ends are counted in their order, minute by minute, on top of the attempts that were running when the
    minute began. A minute's instants fit into memory, and an array of numbers is sorted in half of the time that a
    window over rows takes. An attempt that ended at the last instant of an hour did not run in the next one. An hour
    in which no attempt starts or ends has no row: `attempts_by_hour` counts those that run right through it.
    """
    # A start is an odd number and an end an even one. Of both at the same instant the end comes first: one follows the
    # other.
    start, end = F.unix_micros("started_on") * 2 + 1, F.unix_micros("ended_on") * 2
    at = F.col("at")
    change = at % 2 * 2 - 1
    minute = F.floor((at - (1 - at % 2) * 2) / (2 * _MINUTE))  # the end of a minute is still part of it
    nothing = F.struct(F.lit(0).cast("long").alias("running"), F.lit(0).cast("long").alias("most"))
    most = F.aggregate("instants", nothing, _count_running)["most"]
    minutes = (
        all_attempts.where(F.col("started_on") < F.col("ended_on"))
        .select("queue", F.explode(F.array(start, end)).alias("at"))
        .groupBy("queue", minute.alias("minute"))
        .agg(F.sort_array(F.collect_list("at")).alias("instants"), F.sum(change).alias("change"))
        .select("queue", "minute", "change", most.alias("most"))
    )
    earlier = Window.partitionBy("queue").orderBy("minute").rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum("change").over(earlier), F.lit(0))
    return (
        minutes.withColumn("running", before + F.col("most"))
        .groupBy("queue", hour_of(F.timestamp_seconds(F.col("minute") * 60)).alias("hour"))
        .agg(F.max("running").alias("concurrency"))
    )


def _count_running(counted: Column, at: Column) -> Column:
    running = counted["running"] + at % 2 * 2 - 1
    return F.struct(running.alias("running"), F.greatest(counted["most"], running).alias("most"))


def by_hour(jobs: DataFrame, all_attempts: DataFrame) -> DataFrame:
    """All of the above side by side, one row for each queue and hour in which something happened.

    ``jobs`` has each job once, with its last end. Utilisation is the share of the queue's slots that were busy, where
    it has as many slots as it was ever seen to use at once.
    """
    answers = [jobs_by_hour(jobs), attempts_by_hour(all_attempts), concurrency_by_hour(all_attempts)]
    names = [name for answer in answers for name in answer.columns[2:]]
    stacked = answers[0]
    for answer in answers[1:]:
        stacked = stacked.unionByName(answer, allowMissingColumns=True)
    whole = stacked.groupBy("queue", "hour").agg(*(F.max(name).alias(name) for name in names))
    counts = [
        "arrivals",
        "completions",
        "failures",
        "cancellations",
        "bad_ends",
        "releases",
        "worker_seconds",
        "carried",
    ]
    filled = (
        whole.na.fill(0, counts)
        .withColumn("retries", F.greatest(F.col("bad_ends") - F.col("failures"), F.lit(0)))
        .withColumn("concurrency", F.greatest("concurrency", "carried"))
    )
    slots = F.max(F.greatest("concurrency", F.ceil(F.col("worker_seconds") / _HOUR), F.lit(1))).over(
        Window.partitionBy("queue")
    )
    return filled.withColumn("slots", slots).select(
        "queue", "hour", "arrivals", "completions", "failures", "cancellations", "retries", "releases",
        *spread("wait"), *spread("run"), "oldest_age", "worker_seconds", "concurrency",
        (F.col("worker_seconds") / _HOUR / F.col("slots")).alias("utilisation"),
    )  # fmt: skip


def _has_run() -> Column:
    return F.col("state").isin("completed", "failed") & F.col("started_on").isNotNull()


def _count(condition: Column, name: str) -> Column:
    return F.count(F.when(condition, 1)).alias(name)
