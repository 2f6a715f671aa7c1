"""Hot keys, slow jobs, the cost of retries, and dead letters."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.attempts import BAD_ENDS
from trioboss.pipeline.transforms.times import due_on, percentiles, seconds_between, spread

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
            percentiles(F.when(ran, seconds_between(due_on(), "started_on")), "wait"),
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
        seconds_between(due_on(), "started_on").alias("wait"),
        "attempt",
        "started_on",
    )


def retry_cost(all_attempts: DataFrame) -> DataFrame:
    """For each queue: how long attempts ran, and how much of that time went into those that did not complete."""
    run = seconds_between("started_on", "ended_on")
    did_not_complete = F.col("outcome") != "completed"
    outcomes = (*BAD_ENDS, "released")
    return (
        all_attempts.groupBy("queue")
        .agg(
            F.count("*").alias("attempts"),
            F.count(F.when(did_not_complete, 1)).alias("wasted_attempts"),
            F.sum(run).alias("worker_seconds"),
            F.coalesce(F.sum(F.when(did_not_complete, run)), F.lit(0.0)).alias("wasted_seconds"),
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
    """For each queue and its dead letter queue: how many failed jobs were sent there, and how those jobs ended."""
    sent = (
        jobs.where((F.col("state") == "failed") & F.col("dead_letter").isNotNull())
        .groupBy(F.col("queue").alias("source"), "dead_letter")
        .agg(
            F.count("*").alias("sent"),
            F.min("completed_on").alias("first_seen"),
            F.max("completed_on").alias("last_seen"),
        )
    )
    ended = (
        jobs.where(F.col("source_queue").isNotNull())
        .groupBy(F.col("source_queue").alias("source"), F.col("queue").alias("dead_letter"))
        .agg(
            F.count(F.when(F.col("state") == "completed", 1)).alias("completed"),
            F.count(F.when(F.col("state") != "completed", 1)).alias("not_completed"),
        )
    )
    return sent.join(ended, ["source", "dead_letter"], "full").na.fill(
        0, ["sent", "completed", "not_completed"]
    )
