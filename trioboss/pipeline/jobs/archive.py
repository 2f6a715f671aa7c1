"""Exports history to a lake of Parquet files, each row once, however often the export is killed and started again.

The lake has one folder a table, day and queue:

    PATH/jobs/date=2026-11-16/queue=email/part-….parquet        the ended jobs, by the day of completed_on (UTC)
    PATH/attempts/date=2026-11-16/queue=email/part-….parquet    the attempts that did not end well, by ended_on
    PATH/_manifest/…                                            what has been exported so far

The columns are those of `spark.read.format("trioboss")`: the tables `archive` and `attempt`. `date` and `queue` are in
the names of the folders (`queue` encoded as Spark does it); `trioboss.pipeline.lake.read_lake` reads them back.

How far the lake is, the database knows too (table `export`). With ``hold`` retention waits for it.
"""

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path

import attrs
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from trioboss.errors import UsageError
from trioboss.pipeline.arguments import add_session_arguments, print_progress, session_of
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.files import Files
from trioboss.pipeline.lake import FOLDERS, utc_day
from trioboss.pipeline.manifest import Batch, Manifest
from trioboss.pipeline.options import Secret, need_dsn
from trioboss.pipeline.planning import read_horizon
from trioboss.pipeline.priority import add_nice_argument, give_way
from trioboss.pipeline.progress import Reporter, say, watch_stages
from trioboss.pipeline.session import get_session

__all__ = ["Exported", "archive", "main"]

_HISTORY = tuple(FOLDERS)
# Nobody can make the server nice: while a statement has a core, the workers of the queue wait for it. So history is
# read in bites of a few milliseconds, which makes an export a little slower.
_CHUNK_ROWS = 1_000


@attrs.frozen
class Exported:
    """What an export did: how many rows came to the lake, by folder, and up to which transaction it is complete."""

    jobs: int = 0
    attempts: int = 0
    end: int = 0

    def __add__(self, batch: Batch) -> "Exported":
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
    batch_rows: int = 1_000_000,
    task_rows: int = 250_000,
    concurrency: int = 2,
    interval: float = 10.0,
    stop: threading.Event | None = None,
    progress: Reporter | None = None,
) -> Exported:
    """Export what is new in history to the lake ``to``; with ``follow``, go on until ``stop`` is set.

    History goes to the lake in batches of about ``batch_rows``, each read by tasks of about ``task_rows``; at most
    ``concurrency`` of them read at a time. ``hold``: from now on retention keeps what this lake does not have; False:
    it no longer does; None: as it was.
    """
    spark, address, stopped = spark or get_session(), need_dsn(dsn), stop or threading.Event()
    manifest = Manifest(Files(spark, to))
    export = _Export(spark, manifest, address, schema, batch_rows, task_rows, concurrency, progress)
    with export.alone():
        total = export.recover(hold)
        while not stopped.is_set():
            batch = export.next_batch(total.end)
            if batch is not None:
                total += batch
            elif not follow or stopped.wait(interval):
                break
    return total


@attrs.frozen
class _Export:
    """One export, from its beginning to its end."""

    _spark: SparkSession
    _manifest: Manifest
    _dsn: Secret
    _schema: str
    _batch_rows: int
    _task_rows: int
    _concurrency: int
    _progress: Reporter | None

    @property
    def _files(self) -> Files:
        return self._manifest.files

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other exports to this lake away."""
        with self._database() as database:
            if database.run("lock_lake", lake=self._files.root) != [(True,)]:
                raise UsageError(f"{self._files.root}: another export to this lake is running")
            yield

    def recover(self, hold: bool | None) -> Exported:
        """Finish what was begun before."""
        last = self._manifest.recover()
        end = last.end if last else 0
        self._mark(end, hold)
        return Exported(end=end)

    def next_batch(self, first: int) -> Batch | None:
        """Export the next rows; None if there are none."""
        with self._database() as database:
            end, counts = self._choose(database, first)
        if not any(counts.values()):
            return None
        began, last = time.monotonic(), self._manifest.last()
        number = last.number + 1 if last else 1
        rows = {
            FOLDERS[table]: self._write(table, count, first, end) for table, count in counts.items() if count
        }
        batch = Batch(number, first, end, rows, tuple(self._moves(number)))
        self._manifest.add(batch)
        self._mark(end)
        say(self._progress, f"batch {number}", sum(rows.values()), time.monotonic() - began)
        return batch

    def _choose(self, database: Database, first: int) -> tuple[int, dict[str, int]]:
        """Where the next batch ends, and about how many rows of each table it has."""
        sealed = read_horizon(database).sealed
        if sealed < first:
            raise UsageError(
                f"the lake is at transaction {first}, the database at {sealed}: it was restored from a dump, or is "
                "another one; export it to a new lake"
            )
        end, limit = sealed, self._batch_rows
        for table in _HISTORY:
            of = {"archive": table}
            for (cut,) in database.run("find_cut", of=of, first=first, sealed=end, limit=limit):
                ((new,),) = database.run("find_new", of=of, first=first, sealed=end)
                end = max(cut, new + 1)
        counts = {
            table: database.run("count_history", of={"archive": table}, first=first, sealed=end)[0][0]
            for table in _HISTORY
        }
        return end, counts

    def _write(self, table: str, count: int, first: int, end: int) -> int:
        """Write the rows of a table aside; return how many there were."""
        written = Observation(f"trioboss {table}")
        rows = self._read(table, count, first, end).observe(written, F.count(F.lit(1)).alias("rows"))
        dated = rows.withColumn("date", utc_day(TABLES[table].time or ""))
        folder = self._files.at(f"{self._manifest.aside}/{FOLDERS[table]}")
        with watch_stages(self._spark, f"export {FOLDERS[table]}", self._progress):
            dated.write.mode("overwrite").partitionBy("date", "queue").parquet(folder)
        return int(written.get["rows"])

    def _read(self, table: str, count: int, first: int, end: int) -> DataFrame:
        options: dict[str, str | int] = {
            "dsn": str(self._dsn),
            "schema": self._schema,
            "table": table,
            "fromXid": first,
            "toXid": end,
            "numPartitions": ceil(count / self._task_rows),
            "concurrency": self._concurrency,
            "chunkRows": _CHUNK_ROWS,
        }
        return self._spark.read.format("trioboss").options(**options).load()

    def _moves(self, number: int) -> Iterator[tuple[str, str]]:
        aside = self._manifest.aside
        for place, path in enumerate(sorted(self._files.walk(aside, ".parquet"))):
            folder = path.rpartition("/")[0]
            yield f"{aside}/{path}", f"{folder}/part-{number:010}-{place:05}.parquet"

    def _mark(self, end: int, hold: bool | None = None) -> None:
        with self._database() as database, database.transaction():
            for table in _HISTORY:
                database.run("mark_exported", lake=self._files.root, history=table, exported=end, holds=hold)

    @contextmanager
    def _database(self) -> Iterator[Database]:
        with open_database(self._dsn, self._schema) as database:
            yield database


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline archive`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline archive", description="Export job history to a lake of Parquet files."
    )
    parser.add_argument(
        "--to", required=True, metavar="PATH", help="the lake: a folder, or any address Spark knows"
    )
    parser.add_argument("--follow", action="store_true", help="go on as a stream, until interrupted")
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between two looks (default 10)")
    hold = parser.add_mutually_exclusive_group()
    hold.add_argument("--hold", action="store_true", default=None, help="retention keeps what the lake lacks")
    hold.add_argument("--no-hold", dest="hold", action="store_false", help="retention need not wait")
    add_nice_argument(parser)
    add_session_arguments(parser)
    given = parser.parse_args(argv)
    give_way(given.nice)
    exported = archive(
        given.dsn,
        given.to,
        spark=session_of(given),
        schema=given.schema,
        follow=given.follow,
        hold=given.hold,
        interval=given.interval,
        progress=print_progress,
    )
    print(f"{exported.jobs} jobs and {exported.attempts} attempts exported, up to transaction {exported.end}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
