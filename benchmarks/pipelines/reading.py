"""How fast is history read, compared with Spark's JDBC source on the same table, with as many partitions?"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.harness.percentiles import median
from benchmarks.harness.processes import python_module, run_program
from benchmarks.harness.progress import log
from benchmarks.harness.server import run_sql
from benchmarks.harness.tables import Spread, Table
from benchmarks.pipelines.context import PipelineContext, discard, jdbc_options, timed
from trioboss.pipeline.columns import TABLES, Column

__all__ = ["WAYS", "fill_history", "measure_reading"]

_SOME = ("id", "queue", "started_on", "completed_on")
_FIRST = ("all columns", "count() of one column")
"""The cases that are also measured as the first query of a session."""
FILL = """
insert into trioboss.archive (id, queue, priority, data, outcome, retry_count, start_after, started_on, key, created_on,
    completed_on, output, policy, worker, attempt, seq)
select gen_random_uuid(), 'queue' || n % 8, n % 5,
    jsonb_build_object('order', n, 'customer', md5(n::text), 'items', jsonb_build_array(n % 7, n % 11)), 'completed',
    0, at, at + interval '20 ms', 'key' || n % 1000, at, at + interval '50 ms', '{"ok": true}', 'standard',
    '01920000-0000-7000-8000-000000000001', 1, n
from generate_series(1, %s) n, lateral (select now() - interval '1 hour' + n * interval '1 ms' as at) t
"""


def fill_history(rows: int) -> Callable[[str], None]:
    """Return a function that fills the archive with jobs of eight queues."""

    def fill(dsn: str) -> None:
        run_sql(dsn, FILL.replace("%s", str(rows)), "vacuum (freeze, analyze) trioboss.archive")

    return fill


def measure_reading(context: PipelineContext) -> Table:
    """Read all columns, some columns, one queue of eight; in a session that has read before, and in a new one."""
    template = context.server.template(
        f"{context.rows:,} archived", fill_history(context.rows), context.server.migrated()
    )
    table = Table(
        f"Reading {context.rows:,} archived jobs, {context.partitions} partitions",
        ("read", "trioboss, s", "rows/s", "JDBC, s", "times as fast"),
    )
    with context.server.database(template.name) as dsn:
        ways = {name: make for name, make in WAYS.items() if name == "trioboss" or context.jar}
        cases = {
            name: make(context.spark, dsn, context.rows, context.partitions) for name, make in ways.items()
        }
        for case in cases["trioboss"]:
            found: dict[str, list[float]] = {name: [] for name in ways}
            for number in range(context.repeats + 1):
                for name, seconds in found.items():
                    took = timed(lambda name=name, case=case: discard(cases[name][case]()))  # type: ignore[misc]
                    if number:  # the first round is the warm-up
                        seconds.append(took)
            _add(table, case, context.rows if case != "one queue of 8" else context.rows // 8, found)
        for case in _FIRST:
            found = {name: [] for name in ways}
            for _ in range(context.repeats):
                for name, seconds in found.items():
                    seconds.append(_read_first(context, dsn, name, case))
            _add(table, f"{case}, first query of a session", context.rows, found)
    table.notes.append(
        "the first query of a session: each in a new process; starting the session is not counted"
    )
    if context.jar is None:
        table.notes.append(
            "no JDBC driver: install the Debian package libpostgresql-jdbc-java, or use --jdbc JAR"
        )
    return table


def _read_first(context: PipelineContext, dsn: str, way: str, case: str) -> float:
    spec = {
        "way": way,
        "case": case,
        "dsn": dsn,
        "rows": context.rows,
        "partitions": context.partitions,
        "jar": None if context.jar is None else str(context.jar),
    }
    return float(run_program(python_module("benchmarks.programs.first_read"), spec, "done")["seconds"])


def _add(table: Table, case: str, rows: int, found: dict[str, list[float]]) -> None:
    ours, theirs = found["trioboss"], found.get("JDBC")
    ratio = median(theirs) / median(ours) if theirs else None
    table.add(case, Spread.of(ours), rows / median(ours), Spread.of(theirs) if theirs else None, ratio)
    log(f"read {case}: {median(ours):.2f} s" + (f", JDBC {median(theirs):.2f} s" if theirs else ""))


_Cases = dict[str, Callable[[], DataFrame]]


def _ours(spark: SparkSession, dsn: str, rows: int, partitions: int) -> _Cases:
    def read(**more: Any) -> DataFrame:
        options = {"dsn": dsn, "table": "archive", "numPartitions": partitions, **more}
        return spark.read.format("trioboss").options(**options).load()

    return {
        "all columns": read,
        "4 columns": lambda: read(columns=",".join(_SOME)),
        "one queue of 8": lambda: read(queue="queue3"),
        # Spark does not tell a Python source that it needs no column at all: count() alone reads all of them.
        "count()": lambda: read().agg(F.count("*")),
        "count() of one column": lambda: read(columns="seq").agg(F.count("*")),
    }


def _select_for_jdbc(column: Column) -> str:
    return f'{column.value}::text::bigint AS "{column.name}"' if column.kind == "xid" else column.selected


def _jdbc(spark: SparkSession, dsn: str, rows: int, partitions: int) -> _Cases:
    """Configure it for speed: large fetches, ranges of a number, and casts of the types that it does not support."""
    columns = ", ".join(_select_for_jdbc(column) for column in TABLES["archive"].columns)
    options = jdbc_options(
        dsn,
        dbtable=f"(select {columns} from trioboss.archive t) history",
        fetchsize="10000",
        partitionColumn="seq",
        lowerBound="1",
        upperBound=str(rows),
        numPartitions=str(partitions),
    )

    def read() -> DataFrame:
        return spark.read.format("jdbc").options(**options).load()

    return {
        "all columns": read,
        "4 columns": lambda: read().select(*_SOME),
        "one queue of 8": lambda: read().where("queue = 'queue3'"),
        "count()": lambda: read().agg(F.count("*")),
        "count() of one column": lambda: read().agg(F.count("*")),
    }


WAYS: dict[str, Callable[[SparkSession, str, int, int], _Cases]] = {"trioboss": _ours, "JDBC": _jdbc}
"""The sources that are compared; each makes the queries on the history of a database."""
