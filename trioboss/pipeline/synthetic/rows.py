"""The made-up rows as expressions of Spark, by the rules of `shapes.py`, for any number of jobs at once."""

from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from trioboss.pipeline.synthetic.shapes import CYCLE, ERRORS, PICK_UP, RETRY_DELAY, SHAPES, WORKER, Shape

__all__ = ["make_dead_letters", "make_jobs", "to_attempts", "to_ended"]

_DAY = 86_400_000
_SWING = 0.6
"""How much busier noon is than midnight: by four to one."""


def make_jobs(spark: SparkSession, total: int, begin: datetime, days: float, seed: int) -> DataFrame:
    """One row for each job, with what its ends and attempts are made from. Times are milliseconds."""
    place = F.col("i") % 100
    before = 0
    queues = []
    for shape in SHAPES:
        jobs = shape.jobs(total, before)
        number = F.floor(F.col("i") / 100) * shape.share + place - before
        queues.append((place < before + shape.share, _describe(shape, jobs, number, begin, days)))
        before += shape.share
    chosen = queues[-1][1]
    for is_of_queue, described in reversed(queues[:-1]):
        chosen = F.when(is_of_queue, described).otherwise(chosen)
    rows = spark.range(total).withColumnRenamed("id", "i").select("i", chosen.alias("q")).select("i", "q.*")
    return rows.withColumn("id", _uuid(F.concat_ws("/", F.lit(seed), "queue", "number")))


def _describe(shape: Shape, jobs: int, number: Column, begin: datetime, days: float) -> Column:
    lines = shape.lines(jobs, days * 86400)
    place = number % 200
    kind = (
        F.when(place == 101, "released")
        .when(place == 53, "lost")
        .when((place % 50 == 17) & F.lit(shape.dies), "dead")
        .when(place % 10 == 3, "failed")
        .otherwise("plain")
    )
    spin = number * 367 % CYCLE
    run = shape.run + F.floor(3 * shape.run * spin * spin / (CYCLE * CYCLE))
    run = F.when(number % lines == 0, 2 * run).otherwise(run) if lines else run
    turn = number * 631 % CYCLE
    name = (
        F.concat(F.lit("customer-"), (number % lines).cast("string")) if lines else F.lit(None).cast("string")
    )
    fields = {
        "queue": F.lit(shape.queue),
        "policy": F.lit(shape.policy),
        "dead_letter": F.lit(shape.dead_letter).cast("string"),
        "number": number,
        "kind": kind,
        "run": run,
        "wait": 5 + F.floor(turn * turn * turn / 1_000_000),
        "singleton_key": name,
        "created": _arrival(number, jobs, begin, days),
    }
    return F.struct(*(column.alias(field) for field, column in fields.items()))


def _arrival(number: Column, jobs: int, begin: datetime, days: float) -> Column:
    """When a job is sent: spread over the days, most of them around noon."""
    at = (number + 0.5) / F.lit(max(jobs, 1)) * F.lit(days)
    swung = at + _SWING / (2 * 3.141592653589793) * F.sin(2 * 3.141592653589793 * at)
    return F.floor(swung * _DAY) + round(begin.timestamp() * 1000)


def to_ended(rows: DataFrame) -> DataFrame:
    """The jobs as the archive has them."""
    for name in {"source_queue", "source_id"} - set(rows.columns):
        rows = rows.withColumn(name, F.lit(None).cast("string"))
    retries = F.when(F.col("kind") == "plain", 0).when(F.col("kind") == "dead", 2).otherwise(1)
    started = _start(retries)
    released = F.col("kind") == "released"
    due = F.when(retries == 0, F.col("created")).otherwise(started - PICK_UP)
    return rows.select(
        "id",
        "queue",
        F.when(F.col("kind") == "dead", "failed").otherwise("completed").alias("state"),
        F.lit(0).alias("priority"),
        F.format_string('{"number": %d}', F.col("number")).alias("data"),
        "singleton_key",
        "policy",
        _time(F.col("created")).alias("created_on"),
        _time(due).alias("start_after"),
        _time(started).alias("started_on"),
        _time(started + F.col("run")).alias("completed_on"),
        (retries + 1).cast("int").alias("attempt"),
        F.lit(WORKER).alias("worker"),
        "dead_letter",
        F.when(released, 0).otherwise(retries).cast("int").alias("retry_count"),
        F.lit(2).alias("retry_limit"),
        "source_queue",
        "source_id",
        F.col("i").alias("seq"),
        F.col("i").alias("xid"),
    )


def to_attempts(rows: DataFrame) -> DataFrame:
    """Their attempts that did not end well."""
    bad = rows.where(F.col("kind") != "plain").withColumn(
        "attempt", F.explode(F.sequence(F.lit(1), F.when(F.col("kind") == "dead", 3).otherwise(1)))
    )
    started = _start(F.col("attempt") - 1)
    outcome = F.when(F.col("kind").isin("released", "lost"), F.col("kind")).otherwise("failed")
    return bad.select(
        F.col("id").alias("job_id"),
        "queue",
        F.col("attempt").cast("int").alias("attempt"),
        F.lit(WORKER).alias("worker"),
        _time(started).alias("started_on"),
        _time(started + F.col("run")).alias("ended_on"),
        outcome.alias("outcome"),
        F.when(outcome == "failed", _error()).alias("error"),
        "singleton_key",
        F.col("i").alias("xid"),
    )


def make_dead_letters(rows: DataFrame) -> DataFrame:
    """The dead letter jobs, each handled within a minute or so."""
    dead = rows.where((F.col("kind") == "dead") & F.col("dead_letter").isNotNull())
    sent = _start(F.lit(2)) + F.col("run")
    jobs = dead.select(
        (F.col("i") + F.lit(1 << 40)).alias("i"),
        F.col("dead_letter").alias("queue"),
        F.lit("standard").alias("policy"),
        F.lit(None).cast("string").alias("dead_letter"),
        "number",
        F.lit("plain").alias("kind"),
        F.lit(1000).cast("bigint").alias("run"),
        F.lit(60_000).cast("bigint").alias("wait"),
        F.lit(None).cast("string").alias("singleton_key"),
        sent.alias("created"),
        _uuid(F.concat_ws("/", F.lit("dead letter"), "id")).alias("id"),
        F.col("queue").alias("source_queue"),
        F.col("id").alias("source_id"),
    )
    return to_ended(jobs)


def _start(nth: Column) -> Column:
    """When an attempt starts, counted from 0. A released one is taken up again at once, the others after a delay."""
    delay = F.when(F.col("kind") == "released", 0).otherwise(RETRY_DELAY)
    return F.col("created") + F.col("wait") + nth * (F.col("run") + delay + PICK_UP)


def _error() -> Column:
    texts = [
        F.to_json(
            F.struct(
                F.lit(name).alias("name"),
                F.format_string(message.replace("{}", "%d"), F.col("number")).alias("message"),
            )
        )
        for name, message, _ in ERRORS
    ]
    which = F.col("number") % CYCLE % 3
    return F.when(which == 0, texts[0]).when(which == 1, texts[1]).otherwise(texts[2])


def _time(milliseconds: Column) -> Column:
    return F.timestamp_millis(milliseconds.cast("bigint"))


def _uuid(text: Column) -> Column:
    return F.regexp_replace(F.md5(text), "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")
