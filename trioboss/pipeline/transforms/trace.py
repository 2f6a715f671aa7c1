"""The trace of every job: its attempts and its ends in order, each attempt with the end of the job that it belongs to.

An attempt's own row has neither the policy nor the position of its job; the end that followed it has. An attempt that
no end followed belongs to a job that has not ended, or was deleted: nothing is known of that job.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from trioboss.pipeline.columns import TABLES

__all__ = ["SERIAL", "TRACED_ATTEMPTS", "TRACED_JOBS", "trace_jobs"]

# Jobs of one key exclude each other. Two indexes enforce it, each for its own policies: a queue that was deleted and
# made again with another policy has both kinds in its history.
SERIAL = {
    "singleton": "key owner",
    "stately": "key owner",
    "key_strict_fifo": "key owner",
    "exclusive": "exclusive",
}

_END = (
    "seq", "policy", "state", "created_on", "start_after", "completed_on", "retry_count", "retry_limit", "source_queue",
    "unique_until",
)  # fmt: skip
TRACED_JOBS = ("id", "queue", "singleton_key", "attempt", "started_on", "worker", *_END)
"""The columns of `archive` that a trace needs."""
TRACED_ATTEMPTS = (
    "job_id",
    "queue",
    "attempt",
    "singleton_key",
    "started_on",
    "ended_on",
    "outcome",
    "worker",
)
"""The columns of `attempt` that a trace needs."""


def trace_jobs(jobs: DataFrame, attempts: DataFrame) -> DataFrame:
    """One row for each recorded attempt and each end; a completed job is both. One shuffle, by job.

    `end` is the end that followed (null: none did). `group` and `group_key` name the attempts that exclude each other:
    those of one key, or else those of one job. `last_attempt` is the highest number of the job's attempts.
    """
    rows = _ends(jobs).unionByName(_bad_attempts(attempts))
    following = Window.partitionBy("queue", "job_id").orderBy("ended_on", "is_end", "attempt")
    next_end = F.first("end", ignorenulls=True).over(following.rowsBetween(0, Window.unboundedFollowing))
    owned = rows.withColumn("next_end", next_end).withColumn("end", F.when(_belongs(), F.col("next_end")))
    of_job = Window.partitionBy("queue", "job_id", F.col("end.seq"))
    last = F.max(F.when(F.col("is_attempt"), F.col("attempt"))).over(of_job)
    serial = F.create_map(*(F.lit(text) for pair in SERIAL.items() for text in pair))
    of_key = F.coalesce("singleton_key", F.lit(""))
    return (
        owned.drop("next_end")
        .withColumn("last_attempt", last)
        .withColumn("group", F.coalesce(serial[F.col("end.policy")], F.lit("job")))
        .withColumn("group_key", F.when(F.col("group") == "job", F.col("job_id")).otherwise(of_key))
    )


def _ends(jobs: DataFrame) -> DataFrame:
    return jobs.select(
        "queue",
        F.col("id").alias("job_id"),
        "singleton_key",
        "attempt",
        "worker",
        "started_on",
        F.col("completed_on").alias("ended_on"),
        F.col("state").alias("outcome"),
        F.lit(True).alias("is_end"),
        ((F.col("state") == "completed") & F.col("started_on").isNotNull()).alias("is_attempt"),
        F.struct(*_END).alias("end"),
    )


def _bad_attempts(attempts: DataFrame) -> DataFrame:
    return attempts.select(
        "queue",
        "job_id",
        "singleton_key",
        "attempt",
        "worker",
        "started_on",
        "ended_on",
        "outcome",
        F.lit(False).alias("is_end"),
        F.lit(True).alias("is_attempt"),
        F.lit(None).cast(TABLES["archive"].schema(_END)).alias("end"),
    )


def _belongs() -> Column:
    """An id may be used again after its first job was deleted: an attempt from before the send is of another job."""
    return F.col("is_end") | (F.col("started_on") >= F.col("next_end.created_on"))
