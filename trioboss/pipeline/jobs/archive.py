"""Exports history to a lake of Parquet files (see `trioboss.pipeline.lake`), each row once.

An export that is killed is finished by the next one. With ``hold``, retention keeps rows that are not in the lake.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

from trioboss.pipeline.arguments import add_session_arguments, check_positive, open_run
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.export import LakeExport, Sizes
from trioboss.pipeline.files import open_files
from trioboss.pipeline.held_back import HeldBack, find_held_back
from trioboss.pipeline.jobs.compact import compact_small
from trioboss.pipeline.low_priority import add_priority_argument, lower_priority
from trioboss.pipeline.manifest import FOLDERS, Batch, Manifest
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.planning import read_horizon
from trioboss.pipeline.progress import Progress, Reporter, report_end
from trioboss.pipeline.redaction import check_columns, parse_redact
from trioboss.pipeline.session import get_session
from trioboss.pipeline.stopping import Stop, stop_on_signals
from trioboss.pipeline.taking import take_lake

__all__ = ["EXIT_HELD_BACK", "Exported", "archive", "forget_lake", "main"]

EXIT_HELD_BACK = 3
"""The exit code of an export that could not get all rows because of somebody's open transaction."""

_POLL = 0.2
"""Seconds between two polls for the end of a transaction, of which no notification comes."""
_COMPACT = 16
"""Small files of one day that are worth a compaction."""
_KEEP_REMOVED = timedelta(hours=24)
_LONG = 60.0
"""Seconds after which an open transaction is reported by an export that follows."""


@attrs.frozen
class Exported:
    """The result of an export."""

    jobs: int = 0
    attempts: int = 0
    end: int = 0
    """The lake has all rows of transactions before this one."""
    held_back: HeldBack | None = None
    """Rows that were committed when the export began, and could not be exported."""

    def add(self, batch: Batch) -> "Exported":
        """With one more batch."""
        jobs, attempts = batch.rows.get("jobs", 0), batch.rows.get("attempts", 0)
        return Exported(self.jobs + jobs, self.attempts + attempts, batch.end)


def archive(
    dsn: str | None,
    to: str | Path,
    *,
    spark: SparkSession | None = None,
    schema: str = "trioboss",
    follow: bool = False,
    hold: bool | None = None,
    adopt: bool = False,
    format: str | None = None,
    redact: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    compact: bool = False,
    drop_pending: bool = False,
    wait: float = 5.0,
    interval: float = 60.0,
    batch_rows: int = 1_000_000,
    task_rows: int = 250_000,
    concurrency: int = 2,
    stop: Stop | None = None,
    progress: Reporter | None = None,
) -> Exported:
    """Export all history that is committed now to the lake ``to``; with ``follow``, go on until ``stop`` is set.

    Rows that were written after a transaction began which is still open are exported when it ends: the export waits
    ``wait`` seconds for that, and then returns with ``held_back``. With ``follow`` it searches for new rows every
    ``interval`` seconds, so that a busy queue makes a few files each time and not many small ones; with ``compact``
    it joins the small files of a day once there are several (see `compact`).

    ``format``: parquet (the default of a new lake), or delta, which also makes the lake a set of Delta tables; a
    Parquet lake is converted to it. ``redact``: columns, or fields of JSON like ``data.customer.email``, that do not
    leave the database, and ``columns``: the only ones that do, besides those by which rows are told apart. The lake
    keeps both for later exports (None: as it has them; empty: none are left out).

    A batch has about ``batch_rows``, read by tasks of about ``task_rows``, ``concurrency`` at a time. ``hold``: from
    now on retention keeps rows that are not in this lake (False: it no longer does; None: as before). ``adopt``: the
    lake is this database's, although pg_upgrade has changed the server's identifier. ``drop_pending``: drop a batch
    that cannot be finished because its files are lost (FilesLost says so), and export its rows again.
    """
    spark, address = spark or get_session(), need_dsn(dsn)
    left_out = None if redact is None else check_redact(redact)
    chosen = None if columns is None else check_columns(columns)
    with open_database(address, schema) as database, describe_queries(spark, "archive"):
        lake, sizes = Manifest(open_files(spark, to)), Sizes(batch_rows, task_rows, concurrency)
        export = take_lake(
            spark, database, lake, address, adopt=adopt, format=format, redact=left_out, columns=chosen,
            drop_pending=drop_pending, sizes=sizes,
        )  # fmt: skip
        if hold is not None:
            export.hold(hold)
        run = _Run(database, export, progress, _COMPACT if compact else None)
        if follow:
            return run.follow(interval, stop or _Never())
        return run.once(wait, stop or _Never())


def check_redact(given: Sequence[str]) -> tuple[str, ...]:
    """The entries, sorted, or raise UsageError."""
    for table in FOLDERS:
        parse_redact(given, TABLES[table])
    return tuple(sorted(set(given)))


class _Never:
    """A stop that is never set."""

    def is_set(self) -> bool:
        return False

    def wait(self, timeout: float) -> bool:
        time.sleep(timeout)
        return False


@attrs.define
class _Run:
    """The loop of an export."""

    _database: Database
    _export: LakeExport
    _progress: Reporter | None
    _compact: int | None
    """So many small files of a day are joined; None: they stay."""
    _total: Exported = Exported()
    _rows_left: int | None = None
    _reported: int | None = None
    """The transaction that was reported last."""

    def once(self, wait: float, stop: Stop) -> Exported:
        """Export all that is committed now."""
        end = read_horizon(self._database).next
        deadline = time.monotonic() + wait
        while True:
            self._export_new(stop)
            held_back = find_held_back(self._database, end)
            if held_back is None or stop.is_set() or time.monotonic() >= deadline:
                return attrs.evolve(self._total, end=self._export.end, held_back=held_back)
            stop.wait(_POLL)

    def follow(self, interval: float, stop: Stop) -> Exported:
        """Export all that is new every so often."""
        while not stop.is_set():
            began = time.monotonic()
            self._export_new(stop)
            self._report_held_back()
            if stop.wait(max(0.0, began + interval - time.monotonic())):
                break
        return attrs.evolve(self._total, end=self._export.end)

    def _export_new(self, stop: Stop) -> None:
        while not stop.is_set():
            began = time.monotonic()
            batch = self._export.next_batch(self._progress)
            if batch is None:
                break
            self._total = self._total.add(batch)
            self._report(batch, time.monotonic() - began)
        if self._compact is not None and self._total.jobs + self._total.attempts:
            self._export.manifest.delete_removed(datetime.now(UTC) - _KEEP_REMOVED)
            compact_small(self._export, at_least=self._compact, progress=self._progress)

    def _report(self, batch: Batch, seconds: float) -> None:
        if self._progress is None:
            return
        rows = sum(batch.rows.values())
        # The rest is counted once: to count it again after each batch would take longer than to export it.
        left = self._export.count_left() if self._rows_left is None else self._rows_left - rows
        self._rows_left = left if left > 0 else None
        what = f"batch {batch.number}" + (f", about {left:,} rows left" if left > 0 else "")
        report_end(self._progress, what, rows, seconds)

    def _report_held_back(self) -> None:
        held_back = find_held_back(self._database, read_horizon(self._database).next)
        if held_back is None or (held_back.seconds or 0.0) < _LONG or held_back.xid == self._reported:
            return
        self._reported = held_back.xid
        if self._progress is not None:
            self._progress(Progress(str(held_back), rows=0))


def forget_lake(
    dsn: str | None, to: str, *, spark: SparkSession | None = None, schema: str = "trioboss"
) -> int:
    """Let retention no longer wait for the lakes at an address, which need not exist any more; return how many."""
    address = open_files(spark or get_session(), to).root
    with open_database(need_dsn(dsn), schema) as database:
        return int(database.run("drop_lake", address=address)[0][0])


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline archive`."""
    given = _parse(argv)
    lower_priority(given.nice)
    if given.forget:
        with open_run(given) as run:
            print(f"{forget_lake(run.dsn, given.to, spark=run.spark, schema=given.schema)} lakes forgotten")
        return 0
    with open_run(given, folder=given.to) as run, stop_on_signals() as stop:
        try:
            exported = archive(
                run.dsn,
                given.to,
                spark=run.spark,
                schema=given.schema,
                follow=given.follow,
                hold=given.hold,
                adopt=given.adopt,
                format=given.format,
                redact=given.redact,
                columns=_split(given.columns),
                compact=given.compact,
                drop_pending=given.drop_pending,
                wait=given.wait,
                interval=given.interval,
                stop=stop,
                progress=run.progress,
            )
        except Exception as error:
            if not stop.is_set() or not type(error).__module__.startswith(("py4j.", "pyspark.")):
                raise
            # The signal was sent to the whole process group, and Java has ended before us.
            print("stopped; the batch that was being written is exported by the next run")
            return 0
    print(f"{exported.jobs} jobs and {exported.attempts} attempts exported, up to transaction {exported.end}")
    if exported.held_back is None:
        return 0
    print(f"incomplete: {exported.held_back}", file=sys.stderr)
    return EXIT_HELD_BACK


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline archive",
        description="Export job history to a lake of Parquet files.",
        epilog=f"Exit code {EXIT_HELD_BACK}: rows could not be exported because of an open transaction.",
    )
    parser.add_argument(
        "--to", required=True, metavar="PATH", help="the lake: a folder, or any address of Hadoop's"
    )
    parser.add_argument("--follow", action="store_true", help="go on until SIGTERM or SIGINT")
    parser.add_argument(
        "--interval", type=float, default=60.0, help="with --follow: seconds between two exports (default 60)"
    )
    parser.add_argument(
        "--wait", type=float, default=5.0, help="seconds to wait for open transactions (default 5)"
    )
    hold = parser.add_mutually_exclusive_group()
    hold.add_argument(
        "--hold", action="store_true", default=None, help="retention keeps rows that are not in the lake"
    )
    hold.add_argument("--no-hold", dest="hold", action="store_false", help="retention need not wait")
    hold.add_argument(
        "--forget", action="store_true", help="export nothing; retention forgets the lake, which may be gone"
    )
    _add_lake_arguments(parser)
    add_priority_argument(parser)
    add_session_arguments(parser)
    given = parser.parse_args(argv)
    check_positive(given, "interval")
    check_redact(given.redact or ())
    check_columns(_split(given.columns) or ())
    check_positive(given, "wait", zero=True)
    return given


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _add_lake_arguments(parser: argparse.ArgumentParser) -> None:
    """The layout that the lake is to have, and how to repair it."""
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="the lake is this database's, which pg_upgrade has given a new identity",
    )
    parser.add_argument(
        "--format",
        choices=("parquet", "delta"),
        help="delta: the lake is also a set of Delta tables (default: as the lake is; a new one is parquet)",
    )
    parser.add_argument(
        "--redact",
        action="append",
        metavar="COLUMN[.FIELD…]",
        help="leave this out, now and in later exports to this lake; may be repeated",
    )
    parser.add_argument(
        "--columns",
        metavar="COLUMN,…",
        help="leave out all columns but these, and those by which rows are told apart, now and in later exports",
    )
    parser.add_argument(
        "--compact", action="store_true", help=f"join the small files of a day once there are {_COMPACT}"
    )
    parser.add_argument(
        "--drop-pending",
        action="store_true",
        help="drop a batch whose files were lost before they were in place, and export its rows again",
    )


if __name__ == "__main__":
    raise SystemExit(main())
