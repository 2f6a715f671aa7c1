"""Where the time goes: hot keys, slow jobs, retries, dead letters."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.attempts import BAD_ENDS
from trioboss.pipeline.transforms.times import percentiles, seconds_between, spread

__all__ = ["dead_letters", "hottest_keys", "jobs_by_queue", "retry_cost", "slowest_jobs"]


def jobs_by_queue(jobs: DataFrame) -> DataFrame:
    """For each queue: how its jobs ended, how long they waited for their last attempt, and when all that was."""
    ran = F.col("state").isin("completed", "failed") & F.col("started_on").isNotNull()
    states = ("completed", "failed", "cancelled")
    return (
        jobs.groupBy("queue")
        .agg(
            F.count("*").alias("jobs"),
            *(F.count(F.when(F.col("state") == state, 1)).alias(state) for state in states),
            percentiles(F.when(ran, seconds_between("start_after", "started_on")), "wait"),
            F.min("completed_on").alias("first_end"),
            F.max("completed_on").alias("last_end"),
        )
        .select("*", *spread("wait"))
        .drop("wait")
    )


def hottest_keys(all_attempts: DataFrame) -> DataFrame:
    """For each key of each queue: its attempts, and the workers' time they took."""
    run = seconds_between("started_on", "ended_on")
    return (
        all_attempts.where(F.col("singleton_key").isNotNull())
        .groupBy("queue", "singleton_key")
        .agg(
            F.count("*").alias("attempts"),
            F.count(F.when(F.col("outcome").isin(*BAD_ENDS), 1)).alias("bad_ends"),
            F.sum(run).alias("worker_seconds"),
            F.max("ended_on").alias("last_seen"),
        )
    )


def slowest_jobs(jobs: DataFrame) -> DataFrame:
    """How long the last attempt of each completed job ran, and how long it waited for it."""
    return jobs.where((F.col("state") == "completed") & F.col("started_on").isNotNull()).select(
        "queue",
        "id",
        "singleton_key",
        seconds_between("started_on", "completed_on").alias("run"),
        seconds_between("start_after", "started_on").alias("wait"),
        "attempt",
        "started_on",
    )


def retry_cost(all_attempts: DataFrame) -> DataFrame:
    """For each queue: how long attempts ran, and how much of that time went into those that came to nothing."""
    run = seconds_between("started_on", "ended_on")
    came_to_nothing = F.col("outcome") != "completed"
    outcomes = (*BAD_ENDS, "released")
    return (
        all_attempts.groupBy("queue")
        .agg(
            F.count("*").alias("attempts"),
            F.count(F.when(came_to_nothing, 1)).alias("wasted_attempts"),
            F.sum(run).alias("worker_seconds"),
            F.coalesce(F.sum(F.when(came_to_nothing, run)), F.lit(0.0)).alias("wasted_seconds"),
            percentiles(run, "run"),
            *(
                F.count(F.when(F.col("outcome") == outcome, 1)).alias(f"{outcome}_attempts")
                for outcome in outcomes
            ),
        )
        .select("*", *spread("run"))
        .drop("run")
    )


def dead_letters(jobs: DataFrame) -> DataFrame:
    """For each queue and its dead letter queue: how many failed jobs went there, and how many letters have ended."""
    sent = (
        jobs.where((F.col("state") == "failed") & F.col("dead_letter").isNotNull())
        .groupBy(F.col("queue").alias("source"), "dead_letter")
        .agg(
            F.count("*").alias("letters"),
            F.min("completed_on").alias("first_seen"),
            F.max("completed_on").alias("last_seen"),
        )
    )
    handled = (
        jobs.where(F.col("source_queue").isNotNull())
        .groupBy(F.col("source_queue").alias("source"), F.col("queue").alias("dead_letter"))
        .agg(
            F.count(F.when(F.col("state") == "completed", 1)).alias("handled"),
            F.count(F.when(F.col("state") != "completed", 1)).alias("given_up"),
        )
    )
    return sent.join(handled, ["source", "dead_letter"], "full").na.fill(
        0, ["letters", "handled", "given_up"]
    )
