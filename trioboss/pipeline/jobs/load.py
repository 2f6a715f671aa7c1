"""Loads files, a table or a DataFrame into a queue, each row once, however often the load is killed and started again.

Parquet (.parquet), CSV with a header (.csv) and JSON lines (.json, .jsonl, .ndjson), also packed (.csv.gz) and many
at a time; else the name of a table. A column called `data` is the payload, as JSON; without one the row itself is, as
an object. A column called like an option of `send` (priority, singleton_key, start_after, …) is that option, and a
mapping names the column of an option where names differ: {"singleton_key": "customer"}. A mapped column stays in the
payload.

Files with the same contents loaded into the same queue are one load, unless they have different ids (``load_id``). A
second run of a load that has ended changes nothing. Rows that cannot be jobs go to the table `rejected`, each with the
reason.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from uuid import uuid4

import attrs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from trioboss.errors import UsageError
from trioboss.model.check import check_name
from trioboss.pipeline.arguments import add_session_arguments, check_positive, open_run
from trioboss.pipeline.database import open_database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.inputs import check_inputs, check_mapping, digest_files, open_input, shape_jobs
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.progress import Reporter, report_end, report_stages
from trioboss.pipeline.releasing import Load, LoadRefused, drop_stages, find_load, refusal
from trioboss.pipeline.session import get_session

__all__ = ["load", "main"]


def load(
    files: Sequence[str] | DataFrame,
    queue: str,
    dsn: str | None = None,
    *,
    spark: SparkSession | None = None,
    schema: str = "trioboss",
    mapping: Mapping[str, str] | None = None,
    dry_run: bool = False,
    load_id: str | None = None,
    release_rate: float | None = None,
    bad_rows: str = "fail",
    progress: Reporter | None = None,
) -> Load:
    """Load rows into ``queue``; return how it went, or raise LoadRefused if some of them cannot be jobs.

    ``dry_run`` checks every row and loads none. ``release_rate``: how many of the jobs may start in a second.
    ``bad_rows="aside"`` loads the good ones all the same.
    """
    spark = spark or get_session()
    given = {"queue": queue, "schema": schema, "badRows": bad_rows, "dryRun": str(dry_run).lower()}
    given["loadId"] = load_id or _name(spark, files, queue, mapping or {})
    given |= {"dsn": dsn} if dsn else {}
    given |= {"releaseRate": str(release_rate)} if release_rate is not None else {}
    options = WriteOptions.parse(given)
    if (before := _find_released(options)) is not None:
        return before
    with describe_queries(spark, f"load {queue}"):
        with describe_queries(spark, "read the columns"):
            jobs = shape_jobs(open_input(spark, files), mapping or {})
        began = time.monotonic()
        with report_stages(spark, f"load {queue}", progress):
            _write(jobs, options, {**given, "dsn": str(options.dsn)})
    with open_database(options.dsn, schema) as database:
        ended = find_load(database, options.load)
    assert ended is not None
    report_end(progress, f"load {queue}", ended.staged, time.monotonic() - began)
    return ended


def _find_released(options: WriteOptions) -> Load | None:
    with open_database(options.dsn, options.schema) as database:
        before = find_load(database, options.load)
        if before is None or before.state != "released":
            return None
        drop_stages(database, options.load)
    return attrs.evolve(before, is_repeat=True)


def _write(jobs: DataFrame, options: WriteOptions, given: Mapping[str, str]) -> None:
    try:
        jobs.write.format("trioboss").options(**given).mode("append").save()
    except PySparkException as error:
        if LoadRefused.__name__ not in str(error):
            raise
        with open_database(options.dsn, options.schema) as database:
            raise refusal(database, options.load) from None


def _name(
    spark: SparkSession, files: Sequence[str] | DataFrame, queue: str, mapping: Mapping[str, str]
) -> str:
    """The name of a load: files with the same contents have the same name, other inputs a new one each time."""
    digests = digest_files(spark, files)
    if digests is None:
        return f"once-{uuid4()}"
    content = json.dumps([queue, digests, sorted(mapping.items())])
    return f"files-{hashlib.sha256(content.encode()).hexdigest()[:32]}"


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline load", description="Load files or a table into a queue."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="Parquet, CSV or JSON lines; or a table")
    parser.add_argument("--queue", required=True, help="the name of the queue")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="OPTION=COLUMN",
        help="which column is what; may be repeated",
    )
    parser.add_argument("--dry-run", action="store_true", help="check every row, load none")
    parser.add_argument("--load-id", help="the same name twice is one load (default: made from the files)")
    parser.add_argument("--release-rate", type=float, metavar="JOBS", help="how many may start in a second")
    parser.add_argument(
        "--bad-rows", choices=("fail", "aside"), default="fail", help="aside: load the others (default fail)"
    )
    add_session_arguments(parser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline load`."""
    given = _make_parser().parse_args(argv)
    mapping = parse_mapping(given.map)
    check_positive(given, "release_rate")
    check_name("queue", given.queue)
    check_inputs(given.files)
    try:
        with open_run(given) as run:
            ended = load(
                given.files,
                given.queue,
                run.dsn,
                spark=run.spark,
                schema=given.schema,
                mapping=mapping,
                dry_run=given.dry_run,
                load_id=given.load_id,
                release_rate=given.release_rate,
                bad_rows=given.bad_rows,
                progress=run.progress,
            )
    except LoadRefused as refused:
        print(refused)
        return 1
    print(explain(ended))
    return 0


def parse_mapping(entries: Sequence[str]) -> dict[str, str]:
    """OPTION=COLUMN, OPTION=COLUMN, …"""
    for entry in entries:
        if "=" not in entry:
            raise UsageError(f"map: {entry!r} is not of the form OPTION=COLUMN")
    mapping = dict(entry.split("=", 1) for entry in entries)
    check_mapping(mapping)
    return mapping


def explain(ended: Load) -> str:
    """A load in one line."""
    if ended.is_repeat:
        return f"load {ended.id}: was loaded before, {ended.released} jobs in {ended.queue}; nothing done"
    return (
        f"load {ended.id}: {ended.state}; {ended.staged} rows, {ended.released} jobs in {ended.queue}, "
        f"{ended.rejected} rejected, {ended.left_out} left out because their id or policy slot was taken"
    )


if __name__ == "__main__":
    raise SystemExit(main())
