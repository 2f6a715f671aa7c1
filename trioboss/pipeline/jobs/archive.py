"""Exports history to a lake of Parquet files (see `trioboss.pipeline.lake`), each row once.

An export that is killed is finished by the next one. With ``hold``, retention keeps rows that are not in the lake.
"""

import argparse
import sys
import time
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

from trioboss.pipeline.arguments import add_session_arguments, print_progress, session_of
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.export import LakeExport, Sizes, take_lake
from trioboss.pipeline.files import Files
from trioboss.pipeline.held_back import HeldBack, find_held_back
from trioboss.pipeline.low_priority import add_nice_argument, lower_priority
from trioboss.pipeline.manifest import Batch, Manifest
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.planning import read_horizon
from trioboss.pipeline.progress import Progress, Reporter, report_step
from trioboss.pipeline.session import get_session
from trioboss.pipeline.stopping import Stop, stop_on_signals

__all__ = ["EXIT_HELD_BACK", "Exported", "archive", "forget_lake", "main"]

EXIT_HELD_BACK = 3
"""The exit code of an export that could not get all rows because of somebody's open transaction."""

_POLL = 0.2
"""Seconds between two polls for the end of a transaction, of which no notification comes."""
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
    ``wait`` seconds for that, and then returns with `held_back`. With ``follow`` it looks for new rows every
    ``interval`` seconds, so that a busy queue makes a few files each time and not many small ones.

    History is exported in batches of about ``batch_rows``, each read by tasks of about ``task_rows``, of which
    ``concurrency`` read at a time. ``hold``: from now on retention keeps rows that are not in this lake (False: it no
    longer does; None: as before). ``adopt``: the lake is this database's, although the server's identifier has changed
    (pg_upgrade does that).
    """
    spark, address = spark or get_session(), need_dsn(dsn)
    with open_database(address, schema) as database:
        sizes = Sizes(batch_rows, task_rows, concurrency)
        export = take_lake(spark, database, Manifest(Files(spark, to)), address, adopt=adopt, sizes=sizes)
        if hold is not None:
            export.hold(hold)
        run = _Run(database, export, progress)
        if follow:
            return run.follow(interval, stop or _Never())
        return run.once(wait, stop or _Never())


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
    _total: Exported = Exported()
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
                return
            self._total = self._total.add(batch)
            rows = sum(batch.rows.values())
            report_step(self._progress, f"batch {batch.number}", rows, time.monotonic() - began)

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
    address = Files(spark or get_session(), to).root
    with open_database(need_dsn(dsn), schema) as database:
        return int(database.run("drop_lake", address=address)[0][0])


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline archive`."""
    given = _parse(argv)
    lower_priority(given.nice)
    spark = session_of(given)
    if given.forget:
        print(f"{forget_lake(given.dsn, given.to, spark=spark, schema=given.schema)} lakes forgotten")
        return 0
    with stop_on_signals() as stop:
        try:
            exported = archive(
                given.dsn,
                given.to,
                spark=spark,
                schema=given.schema,
                follow=given.follow,
                hold=given.hold,
                adopt=given.adopt,
                wait=given.wait,
                interval=given.interval,
                stop=stop,
                progress=print_progress,
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
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="the lake is this database's, which pg_upgrade has given a new identity",
    )
    add_nice_argument(parser)
    add_session_arguments(parser)
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
