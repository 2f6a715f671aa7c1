"""What must never be in history. Each question returns findings: what, where, both jobs, and how sure that is.

What is legitimate and only looks wrong:

- An attempt that was lost or expired ends when its lease is taken back, not when its handler stops: the next attempt
  starts after that, so leases never overlap, whatever handlers do.
- A start is later than the end that its claim saw, by the clock of the server, which may be set back a little between
  the two. So starts have a tolerance; and of two attempts only the one that ended later can have been the second.
- A failed or cancelled end can be taken back (retry, resume), and both ends are then in a lake. The second one needs a
  new attempt. A completed job never comes back.
- A resumed job of strict FIFO is in its old place, where others have gone by. Its start_after is the time of that,
  and only those that became ready after it have passed it. A job cancelled while it waited for a retry leaves no trace
  in the database once it is resumed: where this could explain a finding, it is a doubt and not certain.
- Deferred jobs, dead letters and queues with `commit_order` off are in line later than their number says.
- Deleted jobs leave their attempts behind, but neither policy nor place; nothing is concluded from these.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as F

from trioboss.pipeline.transforms.attempts import BAD_ENDS
from trioboss.pipeline.transforms.times import add_seconds

__all__ = [
    "FINDING",
    "missing_ends",
    "order_of_starts",
    "over_limit",
    "overlaps",
    "passed_retries",
    "two_ends",
]

FINDING = (
    "kind",
    "queue",
    "key",
    "job",
    "attempt",
    "other_job",
    "other_attempt",
    "at",
    "seconds",
    "certain",
    "detail",
)
"""The columns of a finding."""

_FIFO = "key_strict_fifo"


def overlaps(trace: DataFrame, tolerance: float) -> DataFrame:
    """Attempts that ran at the same time although they exclude each other: of one key, or of one job."""
    rows = in_line(trace)
    before = F.col("before")
    came_second = before["ended_on"] <= F.col("ended_on")
    second_started = F.when(came_second, F.col("started_on")).otherwise(before["started_on"])
    first_ended = F.least(before["ended_on"], F.col("ended_on"))
    seconds = (F.unix_micros(first_ended) - F.unix_micros(second_started)) / 1e6
    detail = F.when(F.col("line") == "job", F.lit("attempts of one job")).otherwise(F.col("life.policy"))
    # Two records of one attempt are two ends of it.
    another = before["ended_on"].isNotNull() & (
        (before["job_id"] != F.col("job_id")) | (before["attempt"] != F.col("attempt"))
    )
    return _find(
        rows.withColumn("seconds", seconds).where((F.col("seconds") > tolerance) & another),
        "overlap",
        other_job=before["job_id"],
        other_attempt=before["attempt"],
        at=F.col("started_on"),
        detail=detail,
    )


def order_of_starts(trace: DataFrame, tolerance: float, loose: Sequence[str] = ()) -> DataFrame:
    """Strict FIFO: a job that started before another of its key that was sent before it and was in line.

    ``loose`` are the queues with `commit_order` off. A job with retries no longer says when it was first in line, and
    is not judged as the one that was passed.
    """
    first = _first_starts(trace, loose)
    passed = first.where(
        (F.col("highest_before") > F.col("seq")) & F.col("due").isNotNull() & ~F.col("is_letter")
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
    return _find(
        worst.select(
            "queue",
            "singleton_key",
            F.col("j.job_id").alias("job_id"),
            F.col("j.attempt").alias("attempt"),
            F.col("job_id").alias("passed_job"),
            F.col("attempt").alias("passed_attempt"),
            F.col("j.started_on").alias("started_on"),
            ((F.unix_micros("started_on") - F.unix_micros("j.started_on")) / 1e6).alias("seconds"),
        ),
        "order",
        other_job=F.col("passed_job"),
        other_attempt=F.col("passed_attempt"),
        at=F.col("started_on"),
        detail=F.lit("started before a job of its key that was sent before it"),
    )


def _first_starts(trace: DataFrame, loose: Sequence[str]) -> DataFrame:
    """The first start of each job of strict FIFO, with when it was in line, and whose numbers come before and after."""
    line = Window.partitionBy("queue", "singleton_key").orderBy("started_on", "seq")
    return (
        in_line(trace)
        .where((F.col("life.policy") == _FIFO) & F.col("is_first") & ~F.col("queue").isin(*loose))
        .select(
            "queue", "singleton_key", "job_id", "attempt", "started_on", F.col("life.seq").alias("seq"),
            F.when(_once(), F.col("life.start_after")).alias("due"),
            F.greatest(
                F.col("before.ended_on"), F.when(_once(), F.col("life.start_after")).otherwise(F.col("life.created_on"))
            ).alias("ready"),
            F.col("life.source_queue").isNotNull().alias("is_letter"),
        )
        .withColumn("highest_before", F.max("seq").over(line.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn("lowest_after", F.min("seq").over(line.rowsBetween(1, Window.unboundedFollowing)))
    )  # fmt: skip


def passed_retries(trace: DataFrame, tolerance: float) -> DataFrame:
    """Strict FIFO: a job that started while another of its key was between two attempts, and held the key."""
    of_fifo = (F.col("life.policy") == _FIFO) & (F.col("is_attempt") | (F.col("outcome") == "cancelled"))
    moment = F.when(F.col("is_attempt"), F.col("started_on")).otherwise(F.col("ended_on"))
    line = Window.partitionBy("queue", "line", "line_key").orderBy(moment, *_order())
    held = F.struct("job_id", "attempt", "ended_on", "outcome", "last_attempt", "life", "is_attempt")
    rows = trace.where(of_fifo).withColumn("held", F.lag(held).over(line))
    other = F.col("held")
    due = F.when(_once(), F.col("life.start_after")).otherwise(F.col("life.created_on"))
    # It cannot have been cancelled and resumed in between: that would have moved its start_after.
    certain = (
        (other["attempt"] == other["last_attempt"] - 1)
        & (other["life"]["start_after"] <= F.greatest(other["ended_on"], due))
        & (other["life"]["seq"] < F.col("life.seq"))
    )
    seconds = (F.unix_micros("started_on") - F.unix_micros(other["ended_on"])) / 1e6
    return _find(
        rows.where(
            F.col("is_attempt")
            & other["is_attempt"]
            & (other["job_id"] != F.col("job_id"))
            & (other["outcome"] != "cancelled")
            & (other["attempt"] < other["last_attempt"])
            & (add_seconds("started_on", tolerance) >= other["ended_on"])
        ).withColumn("seconds", seconds),
        "passed a retry",
        other_job=other["job_id"],
        other_attempt=other["attempt"],
        at=F.col("started_on"),
        detail=F.when(certain, F.lit("started between two attempts of a job of its key")).otherwise(
            F.lit("started between two attempts of a job of its key, unless that was cancelled and resumed")
        ),
        certain=certain,
    )


def over_limit(trace: DataFrame) -> DataFrame:
    """Jobs that used more attempts than they had: one, and their retries. Released and cancelled ones are free."""
    spends = F.col("is_attempt") & F.col("outcome").isin(*BAD_ENDS, "completed")
    lives = _lives(trace).agg(
        F.count_distinct(F.when(spends, F.col("attempt"))).alias("recorded"),
        F.max(F.col("life.retry_count") + F.col("life.state").isin("completed", "failed").cast("int")).alias(
            "counted"
        ),
        F.max(F.col("life.retry_limit") + 1).alias("allowed"),
        F.max("singleton_key").alias("singleton_key"),
        F.max("attempt").alias("attempt"),
        F.max("ended_on").alias("ended_on"),
    )
    used = F.greatest("recorded", "counted")
    return _find(
        lives.where(used > F.col("allowed")),
        "over the limit",
        at=F.col("ended_on"),
        detail=F.format_string("%d attempts used, %d allowed", used, F.col("allowed")),
    )


def two_ends(trace: DataFrame) -> DataFrame:
    """Jobs that ended twice without another attempt, or again after they had completed; attempts with two records."""
    life = Window.partitionBy("queue", "job_id", "life.seq")
    earlier = F.lag(F.struct("outcome", "attempt", "ended_on")).over(
        life.orderBy("ended_on", "attempt", "outcome")
    )
    ends = trace.where("is_end").withColumn("earlier", earlier)
    again = (
        (F.col("earlier.outcome") == "completed")
        | (F.col("attempt") < F.col("earlier.attempt"))
        | (F.col("outcome").isin("completed", "failed") & (F.col("attempt") == F.col("earlier.attempt")))
    )
    records = Window.partitionBy("queue", "job_id", "life.seq", "attempt").orderBy("ended_on", "outcome")
    attempts = trace.where(F.col("is_attempt") & F.col("life").isNotNull())
    recorded = attempts.withColumn("earlier", F.lag(F.struct("outcome", "attempt", "ended_on")).over(records))
    both_completed = (F.col("outcome") == "completed") & (F.col("earlier.outcome") == "completed")
    found = ends.where(again).unionByName(recorded.where(F.col("earlier").isNotNull() & ~both_completed))
    return _find(
        found,
        "two ends",
        other_job=F.col("job_id"),
        other_attempt=F.col("earlier.attempt"),
        at=F.col("ended_on"),
        seconds=(F.unix_micros("ended_on") - F.unix_micros("earlier.ended_on")) / 1e6,
        detail=F.concat(F.col("outcome"), F.lit(" after "), F.col("earlier.outcome")),
    )


def missing_ends(trace: DataFrame) -> DataFrame:
    """Jobs with an attempt that never ended: it was claimed, for its number is gone, and there is no record of it.

    Only jobs that were sent after the oldest record of an attempt are judged: before that, history may be gone.
    """
    oldest = trace.where(~F.col("is_end")).agg(F.min("ended_on").alias("since"))
    lives = _lives(trace).agg(
        F.count_distinct(F.when(F.col("is_attempt"), F.col("attempt"))).alias("recorded"),
        F.max(F.when(F.col("is_end"), F.col("attempt"))).alias("attempt"),
        F.max("singleton_key").alias("singleton_key"),
        F.max("ended_on").alias("ended_on"),
        F.min("life.created_on").alias("created_on"),
    )
    known = lives.crossJoin(F.broadcast(oldest)).where(F.col("created_on") >= F.col("since"))
    missing = F.col("attempt") - F.col("recorded")
    return _find(
        known.where(missing > 0),
        "no end",
        at=F.col("ended_on"),
        detail=F.format_string("%d of %d attempts have no record", missing, F.col("attempt")),
    )


def in_line(trace: DataFrame) -> DataFrame:
    """Attempts, with the one `before` them in their line that ended last, and whether they are their job's first."""
    line = Window.partitionBy("queue", "line", "line_key").orderBy(*_order())
    before = F.max(F.struct("ended_on", "started_on", "job_id", "attempt")).over(
        line.rowsBetween(Window.unboundedPreceding, -1)
    )
    nth = F.row_number().over(
        Window.partitionBy("queue", "line", "line_key", "job_id", "life.seq").orderBy(*_order())
    )
    return trace.where("is_attempt").withColumn("before", before).withColumn("is_first", nth == 1)


def _once() -> Column:
    """The job was claimed once, so that its start_after is still the first."""
    return (F.col("last_attempt") == 1) & (F.col("life.retry_count") == 0)


def _order() -> tuple[str, ...]:
    return "started_on", "ended_on", "job_id", "attempt"


def _lives(trace: DataFrame) -> GroupedData:
    return trace.where(F.col("life").isNotNull()).groupBy("queue", "job_id", F.col("life.seq").alias("seq"))


def _find(rows: DataFrame, kind: str, **columns: Column) -> DataFrame:
    nothing = {"other_job": "string", "other_attempt": "int", "seconds": "double"}
    known = {
        "kind": F.lit(kind),
        "key": F.col("singleton_key"),
        "job": F.col("job_id"),
        "certain": F.lit(True),
        **{
            name: F.col(name) if name in rows.columns else F.lit(None).cast(kind)
            for name, kind in nothing.items()
        },
        **columns,
    }
    return rows.select(*(known.get(name, F.col(name)).alias(name) for name in FINDING))
