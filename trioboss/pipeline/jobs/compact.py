"""Joins the small files of a lake to larger ones, and drops days that are older than the lake is to keep.

A lake that is exported to every minute has many small files for each day, and every reader opens all of them. Readers
see the same rows before and after. Of a Delta lake, those that have begun with the old files can go on: these are
deleted by a later run, once they have been removed for ``keep_removed``. A lake of plain Parquet deletes them at once,
because engines that read all files of a folder would read their rows twice; a query that has begun may fail for lack of
a file, and is to be run again.
"""

import argparse
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline.arguments import add_session_arguments, check_positive, open_run
from trioboss.pipeline.database import open_database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.export import LakeExport
from trioboss.pipeline.files import open_files
from trioboss.pipeline.lake import check_lake, open_lake
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.progress import Reporter, report_end, report_stages
from trioboss.pipeline.rewriting import drop_files, find_old, find_small, rewrite_files
from trioboss.pipeline.session import get_session
from trioboss.pipeline.taking import take_lake

__all__ = ["Compacted", "compact", "compact_small", "main"]

_KEEP_REMOVED = 24.0
TARGET = 128 << 20
"""The size of a file, in bytes, which suits most engines."""


@attrs.frozen
class Compacted:
    """The result of a compaction."""

    joined: int = 0
    """Small files that were replaced."""
    made: int = 0
    """Larger files that replaced them."""
    dropped: int = 0
    """Files of days that the lake no longer keeps."""
    deleted: int = 0
    """Files of a Delta lake that had been removed before, and were deleted now."""


def compact(
    dsn: str | None,
    lake: str | Path,
    *,
    spark: SparkSession | None = None,
    schema: str = "trioboss",
    keep_days: float | None = None,
    keep_removed: float | None = None,
    target: int = TARGET,
    progress: Reporter | None = None,
) -> Compacted:
    """Join the small files of each day to files of about ``target`` bytes.

    ``keep_days``: rows of days that ended longer ago are dropped. ``keep_removed``: hours for which a Delta lake keeps
    removed files, for readers that have begun with them and for older versions (24 if it is not given).
    """
    spark, address = spark or get_session(), need_dsn(dsn)
    open_lake(spark, lake)
    now = datetime.now(UTC)
    with open_database(address, schema) as database:
        manifest = Manifest(open_files(spark, lake))
        export = take_lake(spark, database, manifest, address)
        if keep_removed and not export.keeps_removed:
            raise UsageError("keep-removed: only a Delta lake keeps files that were replaced")
        hours = _KEEP_REMOVED if keep_removed is None else keep_removed
        deleted = manifest.delete_removed(now - timedelta(hours=hours))
        old = []
        if keep_days is not None:
            old = find_old(manifest.contents().files, (now - timedelta(days=keep_days)).date())
            drop_files(export, old)
        done = compact_small(export, target=target, progress=progress)
    return attrs.evolve(done, dropped=len(old), deleted=deleted)


def compact_small(
    export: LakeExport, *, target: int = TARGET, at_least: int = 2, progress: Reporter | None = None
) -> Compacted:
    """Join the files of days that have at least so many small ones, in a lake that is taken."""
    began = time.monotonic()
    small = find_small(export.manifest.contents().files, target, at_least)
    if not small:
        return Compacted()
    rows = sum(file.rows for file in small)
    with describe_queries(export.spark, "compact"), report_stages(export.spark, "compact", progress, rows):
        batch = rewrite_files(export, small, "compact", target=target)
    report_end(progress, f"compact {len(small)} files", rows, time.monotonic() - began)
    return Compacted(len(small), len(batch.files))


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline compact`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline compact",
        description="Join the small files of a lake, and drop days that it is not to keep.",
    )
    parser.add_argument("--lake", required=True, metavar="PATH", help="the lake")
    parser.add_argument(
        "--keep-days", type=float, metavar="DAYS", help="drop days that are older (default: none)"
    )
    parser.add_argument(
        "--keep-removed", type=float, metavar="HOURS",
        help="how long a Delta lake keeps files that were replaced or dropped, for readers (default 24)",
    )  # fmt: skip
    parser.add_argument(
        "--target-mb",
        type=float,
        default=TARGET / (1 << 20),
        metavar="MB",
        help="size of a file (default 128)",
    )
    add_session_arguments(parser)
    given = parser.parse_args(argv)
    check_positive(given, "keep_days", "target_mb")
    check_positive(given, "keep_removed", zero=True)
    check_lake(given.lake)
    with open_run(given) as run:
        done = compact(
            run.dsn, given.lake, spark=run.spark, schema=given.schema, keep_days=given.keep_days,
            keep_removed=given.keep_removed, target=round(given.target_mb * (1 << 20)), progress=run.progress,
        )  # fmt: skip
    print(
        f"{done.joined} small files joined to {done.made}, {done.dropped} files of old days dropped, "
        f"{done.deleted} files deleted that had been removed before"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
