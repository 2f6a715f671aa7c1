"""Makes a history, or rows for a load, of any size, with contents that are known beforehand.

A history is a lake as `archive` writes it: six queues, one for each policy, and a dead letter queue, busiest around
noon. With ``violations`` it also has queues `planted/…`, with so many violations of each kind, and `clean/…`, with as
many legitimate histories that look like some.
"""

import argparse
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trioboss.errors import UsageError
from trioboss.pipeline.arguments import add_session_arguments, check_positive, open_run
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.files import is_local, open_files
from trioboss.pipeline.history import parse_time
from trioboss.pipeline.lake import make_lake
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.progress import Reporter, report_end, report_stages
from trioboss.pipeline.session import get_session
from trioboss.pipeline.synthetic.planted import Row, Violation, plant
from trioboss.pipeline.synthetic.rows import make_dead_letters, make_jobs, to_attempts, to_ended
from trioboss.pipeline.synthetic.shapes import SHAPES, Facts, facts_of
from trioboss.pipeline.terminal import print_json, print_rows

__all__ = ["Synthetic", "main", "synth", "synth_load"]


@attrs.frozen
class Synthetic:
    """The contents of a made-up history: the facts of each queue, and the violations."""

    queues: Mapping[str, Facts]
    dead_letters: int
    """Dead letter jobs, in a queue of their own."""
    violations: list[Violation]


def synth(
    jobs: int,
    to: str | Path,
    *,
    spark: SparkSession | None = None,
    days: float = 7.0,
    begin: datetime | None = None,
    seed: int = 1,
    violations: int = 0,
    progress: Reporter | None = None,
) -> Synthetic:
    """Write a history of so many jobs to a new lake ``to``. The same arguments make the same history."""
    spark = spark or get_session()
    manifest = Manifest(open_files(spark, to))
    _refuse_lake(manifest, to)
    first = begin or _midnight() - timedelta(days=days)
    planted = plant(violations, first + timedelta(hours=1), seed)
    rows = make_jobs(spark, jobs, first, days, seed)
    ended = to_ended(rows).unionByName(make_dead_letters(rows))
    frames = {
        "archive": _with(spark, ended, "archive", planted.jobs),
        "attempt": _with(spark, to_attempts(rows), "attempt", planted.attempts),
    }
    began = time.monotonic()
    with describe_queries(spark, "synth"), report_stages(spark, "make history", progress):
        make_lake(manifest, frames)
    report_end(progress, "make history", jobs, time.monotonic() - began)
    return _known(jobs, days, planted.violations)


def synth_load(rows: int, to: str | Path, *, spark: SparkSession | None = None, seed: int = 1) -> int:
    """Write a Parquet file with rows that `load` takes: data, priority and singleton_key."""
    spark = spark or get_session()
    number = F.col("id")
    spark.range(rows).select(
        F.to_json(F.struct(number.alias("order"), (number * 367 % 1000).alias("amount"))).alias("data"),
        (number % 10).cast("int").alias("priority"),
        F.concat(F.lit("customer-"), F.abs(F.xxhash64(number, F.lit(seed))) % 1000).alias("singleton_key"),
    ).write.mode("errorifexists").parquet(str(to))
    return rows


def _refuse_lake(manifest: Manifest, to: str | Path) -> None:
    if manifest.identity() is not None:
        raise UsageError(f"to: there is a lake at {to} already")


def _midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _with(spark: SparkSession, frame: DataFrame, table: str, rows: list[Row]) -> DataFrame:
    """The frame and the planted rows, with as many columns as the frame has."""
    if not rows:
        return frame
    schema = TABLES[table].schema(frame.columns)
    planted: list[tuple[Any, ...]] = [tuple(row.get(name) for name in schema.names) for row in rows]
    return frame.unionByName(spark.createDataFrame(planted, schema))


def _known(jobs: int, days: float, violations: list[Violation]) -> Synthetic:
    queues, before = {}, 0
    for shape in SHAPES:
        queues[shape.queue] = facts_of(shape, shape.jobs(jobs, before), days * 86400)
        before += shape.share
    dead_letters = sum(queues[shape.queue].failed for shape in SHAPES if shape.dead_letter is not None)
    return Synthetic(queues, dead_letters, violations)


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline synth`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline synth", description="Make a history, or rows for a load, of any size."
    )
    parser.add_argument("--jobs", type=int, required=True, help="how many")
    parser.add_argument(
        "--to", required=True, metavar="PATH", help="a new lake, or with --load a new Parquet file"
    )
    parser.add_argument("--load", action="store_true", help="make rows for `load` instead of a history")
    parser.add_argument("--days", type=float, default=7.0, help="over how many days (default 7)")
    parser.add_argument(
        "--begin", type=parse_time, help="when it begins (default: so that it ended last midnight)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another number makes other ids (default 1)")
    parser.add_argument(
        "--violations", type=int, default=0, help="how many of each kind to plant (default 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_session_arguments(parser)
    given = parser.parse_args(argv)
    check_positive(given, "jobs", "violations", zero=True)
    check_positive(given, "days")
    if not given.load and is_local(given.to):
        _refuse_lake(Manifest(open_files(None, given.to)), given.to)
    # Spark makes the folder of a Parquet file, and refuses one that is there.
    folder = str(Path(given.to).parent) if given.load and is_local(given.to) else given.to
    with open_run(given, needs_database=False, folder=folder) as run:
        if given.load:
            print(f"{synth_load(given.jobs, given.to, spark=run.spark, seed=given.seed)} rows")
            return 0
        made = synth(
            given.jobs, given.to, spark=run.spark, days=given.days, begin=given.begin, seed=given.seed,
            violations=given.violations, progress=run.progress,
        )  # fmt: skip
    _print(made, as_json=given.json)
    return 0


def _print(made: Synthetic, *, as_json: bool) -> None:
    rows = [
        {
            "queue": queue,
            "jobs": facts.jobs,
            "completed": facts.completed,
            "failed": facts.failed,
            "attempts": sum(facts.attempts.values()),
            "worker_seconds": facts.worker_time / 1000,
            "wasted_seconds": facts.wasted_time / 1000,
        }
        for queue, facts in made.queues.items()
    ]
    if as_json:
        violations = [attrs.asdict(violation) for violation in made.violations]
        print_json({"queues": rows, "dead_letters": made.dead_letters, "violations": violations})
        return
    print_rows(rows, tuple(rows[0]))
    print(f"\n{made.dead_letters} dead letter jobs, {len(made.violations)} violations")


if __name__ == "__main__":
    raise SystemExit(main())
