"""How fast are jobs loaded, compared with Spark's JDBC writer, which may insert a row twice?"""

from pyspark.sql import DataFrame

import trioboss
from benchmarks.harness.percentiles import median
from benchmarks.harness.progress import log
from benchmarks.harness.server import run_sql
from benchmarks.harness.tables import Spread, Table
from benchmarks.pipelines.context import PipelineContext, discard, jdbc_options, timed

__all__ = ["measure_writing"]

_ROWS = (
    """concat('{"order": ', id, ', "customer": "', md5(string(id)), '", "items": [', id % 7, ', ', id % 11, ']}')""",
    "int(id % 5)",
)


def measure_writing(context: PipelineContext) -> Table:
    """Load rows of JSON that are cached in memory into a queue."""
    columns = ("by", "s", "rows/s", "times as fast as JDBC")
    table = Table(f"Loading {context.rows:,} jobs, {context.partitions} partitions", columns)
    rows = context.spark.range(context.rows, numPartitions=context.partitions)
    jobs = rows.selectExpr(f"{_ROWS[0]} as data", f"{_ROWS[1]} as priority").cache()
    discard(jobs)
    found: dict[str, list[float]] = {
        name: [] for name in (("trioboss", "JDBC") if context.jar else ("trioboss",))
    }
    for number in range(context.repeats + 1):
        for name, seconds in found.items():
            took = _load(context, jobs, name)
            log(f"{number}/{context.repeats} load by {name}: {took:.2f} s")
            if number:  # the first round is the warm-up
                seconds.append(took)
    jobs.unpersist()
    theirs = median(found["JDBC"]) if "JDBC" in found else None
    for name, seconds in found.items():
        ratio = theirs / median(seconds) if theirs else None
        table.add(name, Spread.of(seconds), context.rows / median(seconds), ratio)
    if context.jar is None:
        table.notes.append(
            "no JDBC driver: install the Debian package libpostgresql-jdbc-java, or use --jdbc JAR"
        )
    table.notes.append(
        "trioboss: exactly once, in one commit; JDBC: at least once, batches of 10,000, rewritten to multi-row inserts"
    )
    return table


def _load(context: PipelineContext, jobs: DataFrame, name: str) -> float:
    with context.server.database() as dsn:
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            boss.create_queue("bulk")
        took = timed(lambda: (_by_trioboss if name == "trioboss" else _by_jdbc)(jobs, dsn))
        ((count,),) = run_sql(
            dsn, "select count(*) from trioboss.live_job where queue = 'bulk' and readiness = 'ready'"
        )
        if count != context.rows:
            raise AssertionError(f"{name} loaded {count} of {context.rows} rows")
    return took


def _by_trioboss(jobs: DataFrame, dsn: str) -> None:
    jobs.write.format("trioboss").options(dsn=dsn, queue="bulk", loadId="bench").mode("append").save()


def _by_jdbc(jobs: DataFrame, dsn: str) -> None:
    """Write complete rows, so that the trigger has no column to fill in."""
    complete = jobs.selectExpr("uuid() as id", "'bulk' as queue", "data", "priority", "'ready' as readiness")
    options = jdbc_options(
        dsn, dbtable="trioboss.live_job_common", batchsize="10000", reWriteBatchedInserts="true"
    )
    complete.write.format("jdbc").options(**options).mode("append").save()
