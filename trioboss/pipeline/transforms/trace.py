"""The trace of every job: its attempts and its ends in order, each attempt with the life it belongs to.

An attempt's own row says neither the policy nor the place of its job; the end that followed it does. An attempt that no
end followed belongs to a job that is still alive or was deleted: nothing is known of its life.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["SERIAL", "trace_jobs"]

# Jobs of one key exclude each other. Two indexes see to it, and neither knows of the other's jobs: a queue that was
# deleted and made again with another policy has both kinds in its history.
SERIAL = {"singleton": "holder", "stately": "holder", "key_strict_fifo": "holder", "exclusive": "exclusive"}

_LIFE = (
    "seq", "policy", "state", "created_on", "start_after", "completed_on", "retry_count", "retry_limit", "source_queue",
)  # fmt: skip


def trace_jobs(jobs: DataFrame, attempts: DataFrame) -> DataFrame:
    """One row for each recorded attempt and each end; a completed job is both. One shuffle, by job.

    `life` is the end that followed (null: none did). `line` and `line_key` name those whose attempts exclude each
    other: the holders of one key, or else the attempts of one job. `last_attempt` is the highest number of the life.
    """
    rows = _ends(jobs).unionByName(_bad_attempts(attempts))
    following = Window.partitionBy("queue", "job_id").orderBy("ended_on", "is_end", "attempt")
    end = F.first("life", ignorenulls=True).over(following.rowsBetween(0, Window.unboundedFollowing))
    owned = rows.withColumn("end", end).withColumn("life", F.when(_within("end"), F.col("end")))
    of_life = Window.partitionBy("queue", "job_id", F.col("life.seq"))
    last = F.max(F.when(F.col("is_attempt"), F.col("attempt"))).over(of_life)
    serial = F.create_map(*(F.lit(text) for pair in SERIAL.items() for text in pair))
    line = F.coalesce(serial[F.col("life.policy")], F.lit("job"))
    return (
        owned.drop("end")
        .withColumn("last_attempt", last)
        .withColumn("line", line)
        .withColumn(
            "line_key",
            F.when(F.col("line") == "job", F.col("job_id")).otherwise(F.coalesce("singleton_key", F.lit(""))),
        )
    )


def _ends(jobs: DataFrame) -> DataFrame:
    return jobs.select(
        "queue",
        F.col("id").alias("job_id"),
        "singleton_key",
        "attempt",
        "started_on",
        F.col("completed_on").alias("ended_on"),
        F.col("state").alias("outcome"),
        F.lit(True).alias("is_end"),
        ((F.col("state") == "completed") & F.col("started_on").isNotNull()).alias("is_attempt"),
        F.struct(*_LIFE).alias("life"),
    )


def _bad_attempts(attempts: DataFrame) -> DataFrame:
    no_life = ",".join(f"{name}:{_TYPES.get(name, 'string')}" for name in _LIFE)
    return attempts.select(
        "queue",
        "job_id",
        "singleton_key",
        "attempt",
        "started_on",
        "ended_on",
        "outcome",
        F.lit(False).alias("is_end"),
        F.lit(True).alias("is_attempt"),
        F.lit(None).cast(f"struct<{no_life}>").alias("life"),
    )


_TYPES = {
    "seq": "bigint",
    "created_on": "timestamp",
    "start_after": "timestamp",
    "completed_on": "timestamp",
    "retry_count": "int",
    "retry_limit": "int",
}


def _within(end: str) -> Column:
    """An id may be used again after its first job was deleted: what began before a job was sent is not of its life."""
    return F.col("is_end") | (F.col("started_on") >= F.col(f"{end}.created_on"))
