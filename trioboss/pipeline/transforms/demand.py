"""Arrivals and run times of each queue, hour by hour: the input of the queueing model."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.times import due_on, hour_of, percentiles, seconds_between, spread

__all__ = ["busiest_hours", "demand_by_hour", "work_of"]


def work_of(jobs: DataFrame, attempts: DataFrame) -> DataFrame:
    """Every attempt with when it could start. Of one that did not end well only its start is known."""
    last = jobs.where(F.col("state").isin("completed") & F.col("started_on").isNotNull()).select(
        "queue", "policy", "singleton_key", due_on().alias("due"),
        seconds_between("started_on", "completed_on").alias("run"),
        seconds_between(due_on(), "started_on").alias("wait"),
    )  # fmt: skip
    others = attempts.select(
        "queue", F.lit(None).cast("string").alias("policy"), "singleton_key", F.col("started_on").alias("due"),
        seconds_between("started_on", "ended_on").alias("run"), F.lit(None).cast("double").alias("wait"),
    )  # fmt: skip
    return last.unionByName(others)


def demand_by_hour(work: DataFrame) -> DataFrame:
    """For each queue and hour: arrivals, the mean run, how irregular both are, and the waits as they were.

    Arrivals are as irregular as their number in a minute is: its variance is its mean where they are independent.
    """
    minutes = work.groupBy(
        "queue", F.timestamp_seconds(F.floor(F.unix_seconds("due") / 60) * 60).alias("minute")
    ).agg(F.count("*").alias("n"))
    arrivals = minutes.groupBy("queue", hour_of("minute").alias("hour")).agg(
        F.sum("n").alias("arrivals"), F.sum(F.col("n") * F.col("n")).alias("squares")
    )
    runs = work.groupBy("queue", hour_of("due").alias("hour")).agg(
        F.avg("run").alias("run"),
        F.var_pop("run").alias("variance"),
        F.max("policy").alias("policy"),
        percentiles(F.col("wait"), "wait"),
    )
    mean = F.col("arrivals") / 60
    variance = (F.col("squares") - F.col("arrivals") * mean) / 59
    of_run = F.col("run") * F.col("run")
    return arrivals.join(runs, ["queue", "hour"]).select(
        "queue", "hour", "arrivals", "run", "policy",
        F.when(of_run > 0, F.col("variance") / of_run).otherwise(F.lit(0.0)).alias("run_variation"),
        (variance / mean).alias("arrival_variation"),
        *spread("wait"),
    )  # fmt: skip


def busiest_hours(demand: DataFrame) -> DataFrame:
    """Of each hour of the week the one with the most work: however long history is, 168 rows a queue."""
    load = F.col("arrivals") * F.col("run")
    hour_of_week = F.floor(F.unix_seconds("hour") / 3600) % 168
    of_week = Window.partitionBy("queue", hour_of_week).orderBy(load.desc(), "hour")
    return demand.withColumn("nth", F.row_number().over(of_week)).where("nth = 1").drop("nth")
